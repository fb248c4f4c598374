"""`inferwatch compare RUN RUN …`: load runs side by side with confidence intervals, as table, Markdown, HTML."""

from pathlib import Path

import click
from rich.console import Console
from rich.markdown import Markdown


@click.command("compare")
@click.argument(
    "runs", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--html", "html_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with plots."
)
@click.option(
    "--markdown", "markdown_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a table."
)
@click.option("--title", default="Load runs", show_default=True)
def command(runs: tuple[Path, ...], html_file: Path | None, markdown_file: Path | None, title: str) -> None:
    """Compare load runs (or folders of rounds); the first is what the others are held against."""
    from loadtests import page
    from loadtests.compare import column
    from loadtests.rounds import read_rounds

    columns = [column(run.name, read_rounds(run)) for run in runs]
    table = page.markdown(columns, title)
    if markdown_file:
        page.write(markdown_file, table)
    if html_file:
        page.write(html_file, page.html(columns, title))
    Console().print(Markdown(table))
