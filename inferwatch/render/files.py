"""Dashboards and a Prometheus -> HTML pages and PNG pictures in a folder."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inferwatch.promapi import Prometheus
from inferwatch.render.html import html
from inferwatch.render.page import Page, draw
from inferwatch.render.variables import Window

Json = Mapping[str, Any]
FORMATS = ("html", "png")


@dataclass(frozen=True)
class Drawn:
    """One dashboard's files, and how many of its panels have data, are empty, or failed."""

    uid: str
    paths: tuple[Path, ...]
    with_data: int
    empty: tuple[str, ...]
    failed: tuple[str, ...]


def write_pages(
    dashboards: Sequence[Json], prometheus: Prometheus, view: Window, out: Path, *,
    formats: Collection[str] = FORMATS, theme: str = "auto", selection: Mapping[str, Sequence[str]] | None = None,
) -> list[Drawn]:  # fmt: skip
    """Draw each dashboard over *view* into *out* as UID.html and UID.png.

    A variable in *selection* that a dashboard does not have is left out for that one. *theme* "auto" is
    dark in pictures. Raises PromError when Prometheus cannot be reached.
    """
    out.mkdir(parents=True, exist_ok=True)
    links = [(one["title"], f"{one['uid']}.html") for one in dashboards]
    found = []
    for dashboard in dashboards:
        page = draw(dashboard, prometheus, view, _known(dashboard, selection or {}))
        found.append(_write(page, out, formats, theme, links))
    return found


def _known(dashboard: Json, selection: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    names = {v["name"] for v in dashboard["templating"]["list"]}
    return {name: values for name, values in selection.items() if name in names}


def _write(
    page: Page, out: Path, formats: Collection[str], theme: str, links: Sequence[tuple[str, str]]
) -> Drawn:  # fmt: skip
    paths = []
    if "html" in formats:
        paths.append(out / f"{page.uid}.html")
        paths[-1].write_text(html(page, links=links, theme=theme), encoding="utf-8")
    if "png" in formats:
        from inferwatch.render.picture import png  # the extra `render`, for pictures only

        paths.append(out / f"{page.uid}.png")
        paths[-1].write_bytes(png(page, "dark" if theme == "auto" else theme))
    panels = [p for p in page.panels if p.description]
    return Drawn(
        page.uid,
        tuple(paths),
        sum(p.state == "data" for p in panels),
        tuple(p.title for p in panels if p.state == "empty"),
        tuple(p.title for p in panels if p.state == "error"),
    )
