"""Dashboards from files: what `render` and the page server draw, and the time ranges people write."""

import json
import re
from pathlib import Path
from typing import Any

DEFAULT_FOLDER = Path(__file__).resolve().parents[2] / "dashboards" / "json"
_RANGE = re.compile(r"^(\d+)([smhd])$")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class SourceError(ValueError):
    """A dashboard file, name or range cannot be used; the text says which and what to do."""


def load(path: Path) -> dict[str, Any]:
    """Read one dashboard.

    Raises SourceError when the file is no classic dashboard JSON.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SourceError(f"{path}: not JSON: {error}") from error
    missing = {"uid", "title", "panels", "templating", "annotations"} - set(
        found if isinstance(found, dict) else ()
    )
    if missing:
        raise SourceError(f"{path}: no classic dashboard, it lacks {', '.join(sorted(missing))}")
    dashboard: dict[str, Any] = found
    return dashboard


def load_all(folder: Path = DEFAULT_FOLDER) -> dict[str, dict[str, Any]]:
    """uid -> dashboard for each JSON file in *folder*, by file name.

    Raises SourceError when there is none.
    """
    found = {one["uid"]: one for one in map(load, sorted(folder.glob("*.json")))}
    if not found:
        raise SourceError(f"{folder}: holds no dashboard; run `inferwatch gen`")
    return found


def seconds(text: str) -> int:
    """ "6h" -> 21600.

    Raises SourceError for anything but a whole number and s, m, h or d.
    """
    match = _RANGE.match(text)
    if not match or not int(match[1]):
        raise SourceError(f"{text!r} is no time range; write it like 15m, 6h or 2d")
    return int(match[1]) * _SECONDS[match[2]]
