"""A tool's name -> the path of a working binary: PATH, cache, distribution's package, Go build."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from inferwatch.stack import debian, gobuild
from inferwatch.stack.errors import StackError
from inferwatch.stack.locks import held
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings
from inferwatch.stack.versions import is_acceptable


@dataclass(frozen=True)
class Part:
    """A released program and the commands that come with it."""

    name: str
    commands: tuple[str, ...]
    debian_package: str | None
    go_module: gobuild.GoModule
    version_argument: str = "--version"


PARTS = (
    Part("prometheus", ("prometheus", "promtool"), "prometheus", gobuild.GO_MODULES[0]),
    Part("alertmanager", ("alertmanager", "amtool"), "prometheus-alertmanager", gobuild.GO_MODULES[1]),
    Part("jaeger", ("jaeger",), None, gobuild.GO_MODULES[2], "version"),
    Part("otelcol", ("otelcol-inferwatch",), None, gobuild.GO_MODULES[3]),
)
TOOLS = tuple(command for part in PARTS for command in part.commands)


@dataclass(frozen=True)
class Binary:
    """A command that answered ``--version``; *origin* says where it comes from."""

    path: Path
    version: str
    origin: str


class Unavailable(StackError):
    """This source cannot give the tool; the text says why, for the list in the final error."""


@dataclass(frozen=True)
class Search:
    """One search for *tool* of *part* at version *pinned*."""

    tool: str
    part: Part
    pinned: str
    cache_dir: Path
    reporter: Reporter
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def log(self) -> Path:
        """Where downloads and builds of this part write."""
        return self.cache_dir / "logs" / f"{self.part.name}.log"


def on_path(search: Search) -> Binary:
    """The tool that the person installed, when it is new enough."""
    found = shutil.which(search.tool, path=search.environ.get("PATH", ""))
    if found is None:
        raise Unavailable("not installed")
    return _accepted(Path(found), search, "PATH")


def cached(search: Search) -> Binary:
    """What an earlier run built or unpacked."""
    path = _built_dir(search) / search.tool
    if not path.is_file():
        raise Unavailable(f"{path} is not there yet")
    return _accepted(path, search, "cache")


def distribution(search: Search) -> Binary:
    """The distribution's package, when it is new enough."""
    version = debian.candidate(_package(search))
    if version is None:
        raise Unavailable(f"apt knows no package {search.part.debian_package}")
    if not is_acceptable(version, search.pinned):
        raise Unavailable(f"apt's {search.part.debian_package} is {version}, older than {search.pinned}")
    return _unpacked(search, version)


def go_build(search: Search) -> Binary:
    """The pinned release, built from its Go module."""
    try:
        gobuild.build(search.part.go_module, search.pinned, _built_dir(search), search.reporter, search.log)
    except StackError as error:
        raise Unavailable(str(error)) from error
    return _accepted(_built_dir(search) / search.tool, search, "Go build")


def older_distribution(search: Search) -> Binary:
    """The distribution's package whatever its version: better than nothing, and said aloud."""
    package = _package(search)
    version = debian.candidate(package)
    if version is None:
        debian.refresh(search.reporter, search.log)
        version = debian.candidate(package)
    if version is None:
        raise Unavailable(f"apt knows no package {search.part.debian_package}")
    search.reporter.say(
        f"using the distribution's {search.tool} {version} in place of {search.pinned}; install Go for the pinned one"
    )
    return _unpacked(search, version)


Source = Callable[[Search], Binary]
SOURCES: tuple[tuple[str, Source], ...] = (
    ("on PATH", on_path),
    ("cached", cached),
    ("distribution's package", distribution),
    ("Go build", go_build),
    ("distribution's older package", older_distribution),
)


def resolve(tool: str, settings: Settings, reporter: Reporter) -> Binary:
    """
    Find or make *tool* (one of TOOLS), building it when nothing else has it.

    Raises StackError that lists each source with its reason.
    """
    search = _search(tool, settings, reporter)
    reasons = []
    with held(search.cache_dir / f"{search.part.name}.lock", reporter, f"fetching {search.part.name}"):
        for name, source in SOURCES:
            try:
                return source(search)
            except Unavailable as reason:
                reasons.append(f"  {name}: {reason}")
    raise StackError(
        f"{tool} {search.pinned} cannot be had:\n"
        + "\n".join(reasons)
        + f"\nInstall {tool} {search.pinned} on PATH, or Go, and try again."
    )


def from_distribution(tool: str, settings: Settings, reporter: Reporter) -> Binary:
    """The distribution's own, older build of *tool*: what rules are checked against beside the pinned one."""
    search = _search(tool, settings, reporter)
    with held(search.cache_dir / f"{search.part.name}.lock", reporter, f"fetching {search.part.name}"):
        package = _package(search)
        if debian.candidate(package) is None:
            debian.refresh(reporter, search.log)
        version = debian.candidate(package)
        if version is None:
            raise StackError(
                f"apt knows no package {package}; run `apt-get update`, or use a Debian or Ubuntu"
            )
        return _unpacked(search, version)


def _search(tool: str, settings: Settings, reporter: Reporter) -> Search:
    for part in PARTS:
        if tool in part.commands:
            return Search(tool, part, settings.pins().of(part.name), settings.cache_dir, reporter)
    raise StackError(f"{tool!r} is not one of {', '.join(TOOLS)}")


def _package(search: Search) -> str:
    if search.part.debian_package is None:
        raise Unavailable(f"no distribution packages {search.part.name}")
    return search.part.debian_package


def _built_dir(search: Search) -> Path:
    return search.cache_dir / f"{search.part.name}-{search.pinned}{search.part.go_module.digest()}"


def _unpacked(search: Search, version: str) -> Binary:
    out = search.cache_dir / f"{search.part.name}-distribution-{version}"
    if not (out / search.tool).is_file():
        try:
            debian.unpack(_package(search), out, search.reporter, search.log)
        except StackError as error:
            raise Unavailable(str(error)) from error
    path = out / search.tool
    return Binary(path, ask_version(path, search.part.version_argument), "distribution's package")


def _accepted(path: Path, search: Search, origin: str) -> Binary:
    version = ask_version(path, search.part.version_argument)
    if not is_acceptable(version, search.pinned):
        raise Unavailable(f"{path} is version {version or 'unknown'}, wanted {search.pinned} or newer")
    return Binary(path, version, origin)


def ask_version(path: Path, argument: str = "--version") -> str:
    """What ``--version`` (or *argument*) names, empty when it names nothing; Unavailable when the binary does not run."""
    try:
        answer = subprocess.run(
            [str(path), argument], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{path} does not run: {error}") from error
    match = re.search(r"ersion[\": ]+v?(\d[\w.+~-]*)", answer.stdout + answer.stderr)
    return match[1] if match else ""
