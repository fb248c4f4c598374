"""The metrics page: names from the files that define them, with their notes; nothing that is no metric."""

import re
from pathlib import Path

from inferwatch.reference import render
from inferwatch.reference.names import Name, read

ROOT = Path(__file__).resolve().parents[2]


def test_names_are_read_with_the_note_beside_or_under_them(tmp_path: Path) -> None:
    """A comment on the line, a text under it, or nothing; labels and other words are left out."""
    file = tmp_path / "names.py"
    file.write_text(
        'from typing import Final\n# A heading.\nLABEL: Final = "model"\n'
        'A: Final = "llm_a_total"  # model; counted once\n'
        'B = "inferwatch:b:ratio"\n"""No sample\nwithout traffic."""\nC = "llm_c"\n'
    )

    assert read(file) == [
        Name("llm_a_total", "model; counted once"),
        Name("inferwatch:b:ratio", "No sample without traffic."),
        Name("llm_c", ""),
    ]


def test_every_name_stands_on_the_page_once() -> None:
    """No metric has two rows, and each file of names that holds metrics has a section."""
    rows = re.findall(r"^\| `([a-z_:0-9]+)` \|", render.page(), re.MULTILINE)
    sections = {name for _, name, _ in render.PAGES}
    files = {p.stem for p in (ROOT / "slo" / "names").glob("*.py") if read(p)}

    assert len(rows) == len(set(rows))
    assert files <= sections


def test_a_stale_page_is_named_and_written(tmp_path: Path) -> None:
    """`gen --check` only names it."""
    for folder in ("slo/names", "docs"):
        (tmp_path / folder).mkdir(parents=True)
    for file in (ROOT / "slo" / "names").glob("*.py"):
        (tmp_path / "slo" / "names" / file.name).write_text(file.read_text())

    assert render.write(check=True, root=tmp_path) == ["docs/metrics.md"]
    assert not (tmp_path / "docs" / "metrics.md").exists()
    render.write(check=False, root=tmp_path)
    assert render.write(check=True, root=tmp_path) == []
