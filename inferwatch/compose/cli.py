"""The pinned version -> a working compose command line: Docker's plugin, the cache, or a Go build."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inferwatch.stack.errors import StackError
from inferwatch.stack.gobuild import WRAPPERS
from inferwatch.stack.locks import held
from inferwatch.stack.progress import Reporter, run_logged
from inferwatch.stack.settings import Settings
from inferwatch.stack.versions import is_acceptable

PACKAGE = "github.com/docker/compose/v5/cmd"
TOOL = "docker-compose"


def resolve(settings: Settings, reporter: Reporter) -> tuple[str, ...]:
    """Words that start the compose command line; StackError when none can be had."""
    version = settings.pins().of("compose")
    if is_acceptable(_answer(["docker", "compose"]), version):
        return ("docker", "compose")
    built = settings.cache_dir / f"compose-{version}" / TOOL
    with held(settings.cache_dir / "compose.lock", reporter, "building the compose command line"):
        if not is_acceptable(_answer([str(built)]), version):
            _build(version, built, reporter, settings.cache_dir / "logs" / "compose.log")
    return (str(built),)


def _answer(words: Sequence[str]) -> str:
    """The version that the command names, empty when it does not run."""
    try:
        answer = subprocess.run([*words, "version", "--short"], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""


def _build(version: str, out: Path, reporter: Reporter, log: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise StackError("no `docker compose` and no `go` on PATH; install one of them")
    manifest = (WRAPPERS / "compose" / "go.mod").read_text(encoding="utf-8")
    if not re.search(rf"github.com/docker/compose/v5 v{re.escape(version)}\b", manifest):
        raise StackError(f"{WRAPPERS}/compose/go.mod does not pin v{version}, as .env does; raise both")
    draft = out.with_suffix(".building")
    flags = f"-s -w -X github.com/docker/compose/v5/internal.Version={version}"
    run_logged(
        [go, "build", "-ldflags", flags, "-o", str(draft), PACKAGE],
        log=log,
        reporter=reporter,
        doing=f"building the compose command line {version} with Go (about two minutes, once)",
        cwd=WRAPPERS / "compose",
        env={**os.environ, "CGO_ENABLED": "0"},
    )
    draft.replace(out)


def read(words: Sequence[str], file: Path, profile: str) -> tuple[dict[str, Any] | None, str]:
    """
    The file as the command line reads it with *profile* (empty: none) and an empty fault, or None and the fault.

    Variables come from the .env beside the file, whatever the person's shell exports.
    """
    answer = subprocess.run(
        [*words, "--file", str(file), "config", "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=file.parent,
        env=_clean(profile),
    )
    if answer.returncode != 0:
        return None, answer.stderr.strip()[-800:]
    return json.loads(answer.stdout), ""


def _clean(profile: str) -> Mapping[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "COMPOSE_PROFILES": profile}
