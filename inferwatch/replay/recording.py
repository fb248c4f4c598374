"""A folder of recorded /metrics pages -> recordings: which page an engine answered with, at what time."""

import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from inferwatch.stack.errors import StackError

MANIFEST = "recordings.json"
_TIMED = re.compile(r"\d+_(?P<ms>\d{13})\.prom(\.gz)?$")
_SCRAPES = "_scrapes.json"
_NAME = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Page:
    """What the engine answered from `at_seconds` on, counted from the recording's start; None: it was not there."""

    at_seconds: float
    path: Path | None

    def text(self) -> bytes:
        """The page as recorded; empty where the engine was not there."""
        if self.path is None:
            return b""
        raw = self.path.read_bytes()
        return gzip.decompress(raw) if self.path.suffix == ".gz" else raw


@dataclass(frozen=True)
class Recording:
    """
    One engine's pages in time order.

    Attributes:
        name: lower case, as an id.
        version: what the engine said of itself on /version, empty where that was not recorded.
    """

    name: str
    pages: tuple[Page, ...]
    version: str = ""

    @property
    def seconds(self) -> float:
        """From the first page until as long after the last as pages are apart on average."""
        last = self.pages[-1].at_seconds
        return last + last / max(1, len(self.pages) - 1)


def read(folder: Path) -> tuple[Recording, ...]:
    """
    Return the recordings of a folder, in the order of their names.

    Understood are recordings.json (name, version, pages with unix_seconds and file, null: not there),
    NAME_scrapes.json with NAME_000.txt and so on beside it, and files named NUMBER_<unix ms>.prom here or
    one folder below. Pages may be gzipped. Raises StackError for a folder without any, or with damage.
    """
    try:
        found = [*_listed(folder), *_scraped(folder), *_timed(folder)]
    except (ValueError, KeyError, TypeError) as error:
        raise StackError(
            f"{folder}: a list of pages is damaged: {error!r}; compare with the README"
        ) from error
    except OSError as error:
        raise StackError(
            f"{error.filename}: cannot be read ({error.strerror}); correct the list of pages"
        ) from error
    if not found:
        raise StackError(
            f"{folder} holds no recording: neither {MANIFEST}, nor *{_SCRAPES}, nor files like 0001_1795970110162.prom"
        )
    found.sort(key=lambda recording: recording.name)
    for one, next_one in pairwise(found):
        if one.name == next_one.name:
            raise StackError(
                f"{folder}: two recordings are both named {one.name!r} as an id; rename one in more than case or signs"
            )
    return tuple(found)


def _listed(folder: Path) -> list[Recording]:
    file = folder / MANIFEST
    if not file.is_file():
        return []
    return [
        _recording(
            entry["name"],
            [(page["unix_seconds"], _existing(folder, page["file"])) for page in entry["pages"]],
            entry.get("version", ""),
        )
        for entry in json.loads(file.read_text(encoding="utf-8"))
    ]


def _existing(folder: Path, name: str | None) -> Path | None:
    if name is None:
        return None
    (folder / name).stat()
    return folder / name


def _scraped(folder: Path) -> list[Recording]:
    found = []
    for file in sorted(folder.glob(f"*{_SCRAPES}")):
        name = file.name.removesuffix(_SCRAPES)
        scrapes = json.loads(file.read_text(encoding="utf-8"))
        pages = [(entry["t"], _page(folder, f"{name}_{entry['k']:03d}.txt")) for entry in scrapes]
        found.append(_recording(name, pages))
    return found


def _page(folder: Path, name: str) -> Path:
    packed = folder / f"{name}.gz"
    return packed if packed.is_file() else folder / name


def _timed(folder: Path) -> list[Recording]:
    found = []
    for place in (folder, *sorted(path for path in folder.iterdir() if path.is_dir())):
        files = [(path, match) for path in place.iterdir() if (match := _TIMED.search(path.name))]
        if files:
            name = folder.name if place == folder else f"{folder.name}-{place.name}"
            found.append(_recording(name, [(int(match["ms"]) / 1000, path) for path, match in files]))
    return found


def _recording(name: str, given: Sequence[tuple[float, Path | None]], version: str = "") -> Recording:
    if len(given) < 2:
        raise StackError(f"recording {name!r} has {len(given)} pages; a series needs two at least")
    pages = sorted(given, key=lambda page: page[0])
    if any(earlier[0] == later[0] for earlier, later in pairwise(pages)):
        raise StackError(f"recording {name!r} has two pages of the same time; remove one")
    start = pages[0][0]
    known_as = _NAME.sub("-", name.lower()).strip("-")
    if not known_as:
        raise StackError(
            f"recording {name!r} has no name that can be an id; give it a letter of a-z or a digit"
        )
    return Recording(known_as, tuple(Page(at - start, path) for at, path in pages), version)
