"""Folders of recorded pages, in each layout that a scrape left them in."""

import gzip
import json
from pathlib import Path

import pytest

from inferwatch.replay.recording import read
from inferwatch.stack.errors import StackError

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "replay"


def test_scrapes_json_names_page_and_time(tmp_path: Path) -> None:
    """`k` and `t` of each entry become a file name and seconds from the first page on."""
    (tmp_path / "load_scrapes.json").write_text('[{"k": 1, "t": 105.5}, {"k": 0, "t": 100.0}]')
    (tmp_path / "load_000.txt").write_text("a 1\n")
    (tmp_path / "load_001.txt.gz").write_bytes(gzip.compress(b"a 2\n"))
    (recording,) = read(tmp_path)

    assert recording.name == "load"
    assert [(page.at_seconds, page.text()) for page in recording.pages] == [(0.0, b"a 1\n"), (5.5, b"a 2\n")]
    assert recording.seconds == 11.0


def test_file_names_carry_unix_milliseconds(tmp_path: Path) -> None:
    """Files like 0001_1795970110162.prom are found one folder below, in order of time."""
    below = tmp_path / "M 1"
    below.mkdir()
    for name in ("0002_1795970112162.prom", "0001_1795970110162.prom"):
        (below / name).write_text(name)
    (recording,) = read(tmp_path)

    assert recording.name.endswith("-m-1")
    assert [(page.at_seconds, page.text().decode()) for page in recording.pages] == [
        (0.0, "0001_1795970110162.prom"),
        (2.0, "0002_1795970112162.prom"),
    ]


def test_a_gap_is_an_engine_that_was_not_there() -> None:
    """The restart among the fixtures has no page between the old process and the new one."""
    by_name = {recording.name: recording for recording in read(FIXTURES)}

    assert sorted(by_name) == ["h200", "overload", "preempt", "restart"]
    assert by_name["restart"].pages[1].path is None
    assert by_name["restart"].pages[1].text() == b""
    # 1795966301.81, when the new process began, less 1795966255.706
    assert by_name["restart"].pages[1].at_seconds == pytest.approx(46.104)
    assert [len(by_name[n].pages) for n in ("overload", "preempt", "h200")] == [16, 8, 14]
    assert by_name["h200"].version == "0.26.0"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "holds no recording"),
        ({"recordings.json": json.dumps([{"name": "x", "pages": []}])}, "has 0 pages"),
        ({"recordings.json": json.dumps([{"name": "x"}])}, "damaged"),
        ({"x_scrapes.json": "[{"}, "damaged"),
        (
            {"recordings.json": '[{"name": "x", "pages": [{"unix_seconds": 1, "file": "gone"}]}]'},
            "gone: cannot be read",
        ),
        (
            {
                "recordings.json": '[{"name": "x", "pages": [{"unix_seconds": 1, "file": null},'
                '{"unix_seconds": 1, "file": null}]}]'
            },
            "two pages of the same time",
        ),
        (
            {
                "recordings.json": json.dumps(
                    [
                        {"name": name, "pages": [{"unix_seconds": at, "file": None} for at in (1, 2)]}
                        for name in ("A_b", "a-B")
                    ]
                )
            },
            "both named 'a-b'",
        ),
        (
            {
                "recordings.json": '[{"name": "中文", "pages": [{"unix_seconds": 1, "file": null},'
                '{"unix_seconds": 2, "file": null}]}]'
            },
            "no name that can be an id",
        ),
    ],
)
def test_a_folder_that_cannot_be_played_is_refused(tmp_path: Path, files: dict[str, str], said: str) -> None:
    """The error says what is wrong with the folder."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(StackError, match=said):
        read(tmp_path)
