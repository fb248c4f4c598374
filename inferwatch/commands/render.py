"""`inferwatch render`: dashboards and a running Prometheus -> HTML pages and PNG pictures, without Grafana."""

import contextlib
import time
from pathlib import Path
from typing import Any

import click

from inferwatch.commands.options import settings_of, stack_folder
from inferwatch.stack.settings import Settings


@click.command("render")
@click.argument("uids", nargs=-1, metavar="[UID…]")
@click.option("--all", "everything", is_flag=True, help="Every dashboard.")
@click.option(
    "--file", "files", type=click.Path(path_type=Path), multiple=True, help="A dashboard's JSON file."
)
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder to write."
)
@click.option(
    "--recording",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Recorded exporter pages in place of a running Prometheus; draws all of their time.",
)
@click.option("--prometheus", "url", help="Base URL.  [default: that of the running stack]")
@click.option("--range", "span", default="1h", show_default=True, help="How far back, like 15m, 6h or 2d.")
@click.option("--end", type=float, help="Unix seconds at which the range ends.  [default: now]")
@click.option("--theme", type=click.Choice(["auto", "dark", "light"]), default="auto", show_default=True)
@click.option(
    "--format", "formats", type=click.Choice(["html", "png"]), multiple=True, help="[default: both]"
)
@click.option(
    "--var", "picked", multiple=True, metavar="NAME=VALUE", help="Pick a variable's value; repeatable."
)
@click.option("--strict", is_flag=True, help="Exit with 1 when a panel failed or is empty.")
@stack_folder
def command(
    uids: tuple[str, ...], everything: bool, files: tuple[Path, ...], out: Path, recording: Path | None,
    url: str | None, span: str, end: float | None, theme: str, formats: tuple[str, ...], picked: tuple[str, ...], strict: bool,
    run_dir: Path | None,
) -> None:  # fmt: skip
    """
    Draw dashboards, named by uid (inferwatch-slo), by file, or --all.

    Each becomes UID.html, one self-contained page, and UID.png, as Grafana would lay it out.
    """
    from inferwatch.promapi import Prometheus
    from inferwatch.render import sources
    from inferwatch.render.files import FORMATS, write_pages
    from inferwatch.render.variables import window
    from slo.spec import load

    scrape_seconds = load().intervals.scrape_seconds
    with contextlib.ExitStack() as stack:
        try:
            chosen = _chosen(uids, everything, files)
            now = end if end is not None else time.time()
            first, last = now - sources.seconds(span), now
        except sources.SourceError as error:
            raise click.ClickException(str(error)) from error
        if recording is not None:
            url, first, last = _recorded(recording, settings_of(run_dir), stack)
        selection = _selection(picked)
        _require_known(selection, chosen)
        prometheus = stack.enter_context(Prometheus(url or settings_of(run_dir).url("prometheus")))
        drawn = write_pages(
            chosen, prometheus, window(first, last, scrape_seconds), out,
            formats=formats or FORMATS, theme=theme, selection=selection,
        )  # fmt: skip
    for one in drawn:
        click.echo(
            f"{one.uid}: {one.with_data} panels with data, {len(one.empty)} empty, {len(one.failed)} failed"
        )
        for word, titles in (("empty", one.empty), ("failed", one.failed)):
            for title in titles:
                click.echo(f"  {word}: {title}")
    click.echo("\n".join(str(path) for one in drawn for path in one.paths))
    if strict and any(one.empty or one.failed for one in drawn):
        raise click.ClickException("some panels are empty or failed")


def _recorded(recording: Path, settings: Settings, stack: contextlib.ExitStack) -> tuple[str, float, float]:
    from inferwatch.stack.progress import to_stderr
    from inferwatch.stack.recorded import prometheus_of

    found = stack.enter_context(prometheus_of(recording, settings, to_stderr()))
    return found.url, found.first, found.last


def _chosen(uids: tuple[str, ...], everything: bool, files: tuple[Path, ...]) -> list[dict[str, Any]]:
    from inferwatch.render import sources

    known = sources.load_all() if everything or uids else {}
    if missing := [uid for uid in uids if uid not in known]:
        raise sources.SourceError(f"no dashboard {missing[0]!r}; there are: {', '.join(known)}")
    chosen = list(known.values()) if everything else [known[uid] for uid in uids]
    chosen += [sources.load(path) for path in files]
    if not chosen:
        raise sources.SourceError("nothing to draw: give a uid, --file or --all")
    return chosen


def _selection(picked: tuple[str, ...]) -> dict[str, list[str]]:
    selection: dict[str, list[str]] = {}
    for one in picked:
        name, equals, value = one.partition("=")
        if not (name and equals and value):
            raise click.ClickException(f"--var {one!r}: write it as NAME=VALUE, like service=llm")
        selection.setdefault(name, []).append(value)
    return selection


def _require_known(selection: dict[str, list[str]], chosen: list[dict[str, Any]]) -> None:
    known = {v["name"] for one in chosen for v in one["templating"]["list"] if v["type"] != "datasource"}
    if missing := sorted(set(selection) - known):
        there = f"there are: {', '.join(sorted(known))}" if known else "it has none"
        raise click.ClickException(f"--var {missing[0]}: no such variable on what is drawn; {there}")
