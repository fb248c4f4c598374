"""deploy/Dockerfile -> what its image holds, and what it copies or runs that is not there."""

import ast
import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from inferwatch.compose.model import Project

FILE = "deploy/Dockerfile"
INSTALLER = "deploy/install.sh"


@dataclass(frozen=True)
class Stage:
    """One stage: its name, what it is built from, and (source, target) of what it copies from the checkout."""

    name: str
    base: str
    copies: tuple[tuple[str, str], ...]
    runs: tuple[str, ...]


def stages(text: str) -> tuple[Stage, ...]:
    """The stages in order."""
    joined = re.sub(r"\\\n\s*", " ", text)
    found: list[Stage] = []
    for line in joined.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            found.append(Stage(name.strip(), base.strip(), (), ()))
        elif word == "COPY" and not rest.startswith("--from") and found:
            *sources, target = rest.split()
            pairs = tuple((s, f"{target}{Path(s).name}" if target.endswith("/") else target) for s in sources)
            found[-1] = _more(found[-1], copies=pairs)
        elif word == "RUN" and found:
            found[-1] = _more(found[-1], runs=(rest,))
    return tuple(found)


def _more(stage: Stage, copies: tuple[tuple[str, str], ...] = (), runs: tuple[str, ...] = ()) -> Stage:
    return Stage(stage.name, stage.base, (*stage.copies, *copies), (*stage.runs, *runs))


def held(root: Path, name: str = "inferwatch") -> tuple[tuple[Path, str], ...]:
    """(path in the checkout, path under /app) of what the image *name* holds."""
    stage = next(s for s in stages((root / FILE).read_text(encoding="utf-8")) if s.name == name)
    return tuple((root / source, target.removeprefix("./")) for source, target in stage.copies)


def faults(root: Path, project: Project) -> list[str]:
    """Sources that are missing or ignored, modules that the image lacks, an installer that CI does not run."""
    found = []
    ignore = _allowed(root / ".dockerignore")
    for stage in stages((root / FILE).read_text(encoding="utf-8")):
        for source, _ in stage.copies:
            if not (root / source).exists():
                found.append(f"{FILE}: COPY {source}: not in the checkout")
            elif not any(
                source == a or source.startswith(f"{a}/") or fnmatch.fnmatch(source, a) for a in ignore
            ):
                found.append(f"{FILE}: COPY {source}: left out by .dockerignore")
    present = {target.split("/")[0] for _, target in held(root)}
    for module in sorted(_modules(project)):
        if module.split(".")[0] not in present:
            found.append(f"{FILE}: {module} is started, but the image does not hold it")
    found += _missing_imports(root, present)
    if INSTALLER not in (root / "Makefile").read_text(encoding="utf-8"):
        found.append(f"Makefile does not run {INSTALLER}; the image's install steps would go untested")
    return found


def _allowed(path: Path) -> list[str]:
    return [line[1:] for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("!")]


def _modules(project: Project) -> Iterable[str]:
    for service in project:
        for words in (service.words, service.health):
            for first, second in pairwise(words):
                if first == "-m":
                    yield second


def _missing_imports(root: Path, present: set[str]) -> list[str]:
    """First-party packages that code of the image imports and the image does not hold."""
    own = {path.name for path in root.iterdir() if (path / "__init__.py").is_file()}
    found = set()
    for package in sorted(present & own - {"inferwatch"}):
        for file in (root / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    names = [node.module]
                for name in names:
                    top = name.split(".")[0]
                    if top in own - present:
                        found.add(f"{FILE}: {package} imports {top}, which the image does not hold")
    return sorted(found)
