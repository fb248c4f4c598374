""".env -> the pinned version of each real part; compose reads the same file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inferwatch.stack.errors import StackError

_LINE = re.compile(r"^([A-Z][A-Z0-9_]*)_VERSION=(\S+)$")


@dataclass(frozen=True)
class Pins:
    """Versions by part, parts in lower case: ``pins.of("prometheus") == "3.14.0"``."""

    source: Path
    versions: Mapping[str, str]

    def of(self, part: str) -> str:
        """Return the pinned version of *part*; StackError when .env has none."""
        try:
            return self.versions[part]
        except KeyError:
            raise StackError(f"{self.source}: no {part.upper()}_VERSION; add it") from None


def load(env_file: Path) -> Pins:
    """Read the pins; StackError when the file cannot be read or a version line is malformed."""
    try:
        lines = env_file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise StackError(f"{env_file}: cannot be read ({error.strerror}); restore it from git") from error
    versions: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        name = line.split("=", 1)[0].strip()
        if line.lstrip().startswith("#") or not name.endswith("_VERSION"):
            continue
        match = _LINE.match(line)
        if match is None:
            raise StackError(f"{env_file}:{number}: {line!r}: write NAME_VERSION=1.2.3, no spaces or quotes")
        versions[match[1].lower()] = match[2]
    return Pins(env_file, versions)


def numbers(version: str) -> tuple[int, ...]:
    """Leading numbers of a version for comparing: ``3.14.0-rc.1`` -> ``(3, 14, 0)``; empty when it has none."""
    match = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def is_acceptable(found: str, pinned: str) -> bool:
    """Whether *found* may stand in for *pinned*: the same major version and no older."""
    have, want = numbers(found), numbers(pinned)
    return bool(have) and have[0] == want[0] and have >= want
