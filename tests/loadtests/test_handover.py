"""Pieces of a worker's files as a master takes them: appended where they belong, refused where they do not fit."""

import zlib
from pathlib import Path
from typing import Any

import pytest

from loadtests.handover import PIECE_BYTES, keep_piece


def _piece(at: int, data: bytes, kind: str = "records") -> dict[str, Any]:
    return {"kind": kind, "at": at, "data": zlib.compress(data)}


def test_pieces_make_the_file_again(tmp_path: Path) -> None:
    """Two pieces in order are one file, named by the worker's number."""
    keep_piece(tmp_path, 3, _piece(0, b"one\n"))
    keep_piece(tmp_path, 3, _piece(4, b"two\n"))
    keep_piece(tmp_path, 3, _piece(0, b"{}\n", "clock"))

    assert (tmp_path / "records-3.jsonl").read_bytes() == b"one\ntwo\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clock-3.json", "records-3.jsonl"]


@pytest.mark.parametrize("at", [0, 3, 8])
def test_a_piece_that_does_not_fit_is_refused(tmp_path: Path, at: int) -> None:
    """One that came twice, overlaps or leaves a hole would spoil the records: the error names the file."""
    keep_piece(tmp_path, 0, _piece(0, b"one\n"))
    with pytest.raises(ValueError, match=rf"records-0\.jsonl: holds 4 bytes, the piece is for byte {at}"):
        keep_piece(tmp_path, 0, _piece(at, b"two\n"))

    assert (tmp_path / "records-0.jsonl").read_bytes() == b"one\n"


def test_what_is_sent_names_no_file(tmp_path: Path) -> None:
    """The kinds are known here; a path is none of them."""
    with pytest.raises(KeyError):
        keep_piece(tmp_path, 0, _piece(0, b"x", "../../etc/cron.d/x"))


def test_a_piece_larger_than_pieces_are_is_refused(tmp_path: Path) -> None:
    """A few kB that unpack to more than was agreed are not unpacked to their end."""
    with pytest.raises(ValueError, match="larger than"):
        keep_piece(tmp_path, 0, _piece(0, b"\0" * (PIECE_BYTES + 1)))
    keep_piece(tmp_path, 0, _piece(0, b"\0" * PIECE_BYTES))

    assert (tmp_path / "records-0.jsonl").stat().st_size == PIECE_BYTES
