"""A pinned wrapper module under build/ -> commands built by the local Go tool chain into the cache."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from inferwatch.stack.errors import StackError
from inferwatch.stack.progress import Reporter, run_logged

WRAPPERS = Path(__file__).resolve().parent / "build"
# The published module of Alertmanager lacks the built web page that ui/web.go embeds.
PLACEHOLDER_PAGE = (
    "<html><body>Alertmanager without its web page: the API under /api/v2 is whole.</body></html>\n"
)


@dataclass(frozen=True)
class GoModule:
    """What to build: *commands* of *path*, from the wrapper folder build/*name*."""

    name: str
    path: str
    commands: tuple[str, ...]
    embedded_page: str | None = None


GO_MODULES = (
    GoModule("prometheus", "github.com/prometheus/prometheus", ("prometheus", "promtool")),
    GoModule(
        "alertmanager",
        "github.com/prometheus/alertmanager",
        ("alertmanager", "amtool"),
        "ui/app/dist/index.html",
    ),
)


def build(module: GoModule, version: str, out: Path, reporter: Reporter, log: Path) -> None:
    """
    Build all commands of *module* into the folder *out*, whole or not at all.

    *version* is what the commands answer to ``--version``. Raises StackError when Go is missing or fails.
    """
    go = shutil.which("go")
    if go is None:
        raise StackError("no `go` on PATH; install Go 1.26 or newer")
    work = out.with_name(out.name + ".building")
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(WRAPPERS / module.name, work / "module")
    if module.embedded_page:
        _replace_with_completed_copy(go, module, work, reporter, log)
    argv = [go, "build", "-v", "-tags", "remove_all_sd,netgo", "-ldflags", _ldflags(version), "-o"]
    run_logged(
        [*argv, str(work / "bin") + "/", *(f"{module.path}/cmd/{command}" for command in module.commands)],
        log=log,
        reporter=reporter,
        doing=f"building {module.name} {version} with Go (a few minutes, once)",
        cwd=work / "module",
        env={**os.environ, "CGO_ENABLED": "0"},
    )
    shutil.rmtree(out, ignore_errors=True)
    (work / "bin").rename(out)
    _remove(work)


def _ldflags(version: str) -> str:
    return f"-s -w -X github.com/prometheus/common/version.Version={version}"


def _replace_with_completed_copy(
    go: str, module: GoModule, work: Path, reporter: Reporter, log: Path
) -> None:
    """Go refuses to overlay files of its module cache, so build from a copy that has the page."""
    run_logged(
        [go, "mod", "download", module.path],
        log=log,
        reporter=reporter,
        doing=f"downloading {module.path}",
        cwd=work / "module",
    )
    listed = subprocess.run(
        [go, "list", "-m", "-f", "{{.Dir}}", module.path],
        cwd=work / "module",
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        raise StackError(f"go cannot locate {module.path}: {listed.stderr.strip()}")
    copy = work / "source"
    shutil.copytree(listed.stdout.strip(), copy, copy_function=shutil.copyfile)
    for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        folder.chmod(0o755)
    page = copy / str(module.embedded_page)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(PLACEHOLDER_PAGE, encoding="utf-8")
    with (work / "module" / "go.mod").open("a", encoding="utf-8") as manifest:
        manifest.write(f"\nreplace {module.path} => {copy}\n")


def _remove(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(folder)
