"""A pinned wrapper module under build/ -> commands built by the local Go tool chain into the cache."""

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml

from inferwatch.stack.errors import StackError
from inferwatch.stack.progress import Reporter, run_logged

WRAPPERS = Path(__file__).resolve().parent / "build"
# The published module of Alertmanager lacks the built web page that ui/web.go embeds.
PLACEHOLDER_PAGE = (
    "<html><body>Alertmanager without its web page: the API under /api/v2 is whole.</body></html>\n"
)


COLLECTOR_CONFIG = WRAPPERS.parents[2] / "otel-collector" / "builder.yaml"
COLLECTOR_BUILDER = "go.opentelemetry.io/collector/cmd/builder"


@dataclass(frozen=True)
class GoModule:
    """
    What to build: *commands* of *path*, from the wrapper folder build/*name*.

    Attributes:
        embedded_page: a file that the published module lacks.
        version_variable: where the linker writes the version that the commands answer.
        builder_config: for the collector, what its own builder makes the module from; there is no wrapper then.
    """

    name: str
    path: str
    commands: tuple[str, ...]
    embedded_page: str | None = None
    version_variable: str = "github.com/prometheus/common/version.Version"
    builder_config: Path | None = None

    def digest(self) -> str:
        """What else than the version decides about the result, as a suffix for the cache; empty for most."""
        if self.builder_config is None:
            return ""
        return f"-{hashlib.sha256(self.builder_config.read_bytes()).hexdigest()[:8]}"


GO_MODULES = (
    GoModule("prometheus", "github.com/prometheus/prometheus", ("prometheus", "promtool")),
    GoModule(
        "alertmanager",
        "github.com/prometheus/alertmanager",
        ("alertmanager", "amtool"),
        "ui/app/dist/index.html",
    ),
    GoModule(
        "jaeger",
        "github.com/jaegertracing/jaeger",
        ("jaeger",),
        version_variable="github.com/jaegertracing/jaeger/internal/version.latestVersion",
    ),
    GoModule(
        "otelcol",
        COLLECTOR_BUILDER,
        ("otelcol-inferwatch",),
        builder_config=COLLECTOR_CONFIG,
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
    if module.builder_config:
        _build_collector(go, module.builder_config, version, work, reporter, log)
    else:
        _build_wrapped(go, module, version, work, reporter, log)
    shutil.rmtree(out, ignore_errors=True)
    (work / "bin").rename(out)
    _remove(work)


def _build_wrapped(
    go: str, module: GoModule, version: str, work: Path, reporter: Reporter, log: Path
) -> None:
    shutil.copytree(WRAPPERS / module.name, work / "module")
    if module.embedded_page:
        _replace_with_completed_copy(go, module, work, reporter, log)
    flags = f"-s -w -X {module.version_variable}={version}"
    argv = [go, "build", "-v", "-tags", "remove_all_sd,netgo", "-ldflags", flags, "-o"]
    run_logged(
        [*argv, str(work / "bin") + "/", *(f"{module.path}/cmd/{command}" for command in module.commands)],
        log=log,
        reporter=reporter,
        doing=f"building {module.name} {version} with Go (a few minutes, once)",
        cwd=work / "module",
        env={**os.environ, "CGO_ENABLED": "0"},
    )


def _build_collector(go: str, config: Path, version: str, work: Path, reporter: Reporter, log: Path) -> None:
    """The collector's builder writes a module from *config* and builds it; every version in it is *version*."""
    wanted = yaml.safe_load(config.read_text(encoding="utf-8"))
    if wanted["dist"]["version"] != version:
        raise StackError(
            f"{config} builds {wanted['dist']['version']} and .env pins {version}; raise both together"
        )
    wanted["dist"]["output_path"] = str(work / "bin")
    work.mkdir(parents=True)
    (work / "builder.yaml").write_text(yaml.safe_dump(wanted), encoding="utf-8")
    run_logged(
        [go, "run", f"{COLLECTOR_BUILDER}@v{version}", "--verbose", "--config", str(work / "builder.yaml")],
        log=log,
        reporter=reporter,
        doing=f"building the collector {version} with Go (minutes, once)",
        cwd=work,
        env={**os.environ, "CGO_ENABLED": "0"},
    )
    for source in (work / "bin").iterdir():
        if source.name != wanted["dist"]["name"]:
            source.unlink()
    (work / "bin").chmod(0o755)


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
