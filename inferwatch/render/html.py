"""A drawn page -> one self-contained HTML file that follows the reader's dark or light."""

import time
from collections.abc import Sequence
from html import escape

from inferwatch.render.page import Page, Placed
from inferwatch.render.svg import svg
from inferwatch.render.theme import DARK, LIGHT

_STYLE = """\
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:14px/1.4 Inter,"Segoe UI",Roboto,Helvetica,Arial,"DejaVu Sans",sans-serif}
header{padding:14px 20px 4px;display:flex;flex-wrap:wrap;gap:4px 18px;align-items:baseline}
h1{font-size:19px;margin:0}
header p{margin:0;color:var(--muted);font-size:12.5px}
nav{padding:4px 20px 8px;font-size:12.5px;display:flex;flex-wrap:wrap;gap:4px 14px}
nav a{color:var(--muted);text-decoration:none} nav a.here{color:var(--text);font-weight:600} nav a:hover{text-decoration:underline}
main{position:relative;margin:0 12px 12px}
figure{position:absolute;margin:0} svg{display:block;width:100%;height:100%}
svg text{font-family:inherit;font-variant-numeric:tabular-nums}
"""


def html(
    page: Page, *, links: Sequence[tuple[str, str]] = (), refresh_seconds: int | None = None, theme: str = "auto"
) -> str:  # fmt: skip
    """Return the page; *links* are (title, href) of the other dashboards, *theme* is auto, dark or light."""
    refresh = f'<meta http-equiv="refresh" content="{refresh_seconds}">' if refresh_seconds else ""
    nav = "".join(
        f'<a href="{escape(href)}"{" class=here" if title == page.title else ""}>{escape(title)}</a>'
        for title, href in links
    )
    figures = "".join(_figure(one, page) for one in page.panels)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{refresh}'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(page.title)}</title><style>{_colours(theme)}{_STYLE}</style></head><body>"
        f"<header><h1>{escape(page.title)}</h1><p>{escape(page.description)}</p><p>{escape(when(page))}</p></header>"
        f"{f'<nav>{nav}</nav>' if nav else ''}"
        f'<main style="aspect-ratio:{page.width:g}/{page.height:g}">{figures}</main></body></html>\n'
    )


def when(page: Page) -> str:
    """The page's range in local time, its step, and the variables that were picked."""
    start, end = (
        time.strftime("%Y-%m-%d %H:%M", time.localtime(t)) for t in (page.view.start, page.view.end)
    )
    picked = ", ".join(f"{name} {value}" for name, value in page.selection.items() if value != ".*")
    zone = time.strftime("%Z", time.localtime(page.view.end))
    return f"{start} – {end} {zone}, one point every {page.view.step_seconds} s" + (
        f" · {picked}" if picked else ""
    )


def _colours(theme: str) -> str:
    dark = ":root{color-scheme:dark;" + "".join(f"--{k}:{v};" for k, v in DARK.items()) + "}"
    light = ":root{color-scheme:light;" + "".join(f"--{k}:{v};" for k, v in LIGHT.items()) + "}"
    if theme == "auto":
        return f"{dark}@media (prefers-color-scheme: light){{{light}}}"
    return dark if theme == "dark" else light


def _figure(one: Placed, page: Page) -> str:
    box = (
        f"left:{one.x / page.width * 100:.3f}%;top:{one.y / page.height * 100:.3f}%;"
        f"width:{one.canvas.width / page.width * 100:.3f}%;height:{one.canvas.height / page.height * 100:.3f}%"
    )
    said = f"{one.title}. {one.description}"
    return (
        f'<figure id="panel-{one.id}" style="{box}" aria-label="{escape(said)}" title="{escape(one.description)}">'
        f"{svg(one.canvas)}</figure>"
    )
