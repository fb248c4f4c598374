"""Packed answers: read whole, in members, and never larger than an answer can be."""

import gzip
import zlib

import pytest

from exporters.drift.decode import decode
from exporters.drift.wire import WireError

ANSWER = b'{"model": "m", "data": [{"embedding": [1.0, 2.0]}]}'


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (ANSWER, ""),
        (gzip.compress(ANSWER), "gzip"),
        (gzip.compress(ANSWER[:20]) + gzip.compress(ANSWER[20:]), "gzip"),
        (zlib.compress(ANSWER), "deflate"),
    ],
)
def test_an_answer_is_read_whatever_it_is_packed_in(body: bytes, encoding: str) -> None:
    """Plain, gzip in one and in two members, deflate."""
    model, checked = decode(body, encoding)

    assert (model, checked.vectors.tolist()) == ("m", [[1.0, 2.0]])


@pytest.mark.parametrize(
    ("body", "encoding", "says"),
    [
        (gzip.compress(b"0" * 5_000_000), "gzip", "over 64 times as large"),
        (zlib.compress(b"0" * 5_000_000), "deflate", "over 64 times as large"),
        (gzip.compress(ANSWER)[:-9], "gzip", "ends too early"),
        (gzip.compress(ANSWER) + b"junk", "gzip", "not gzip"),
        (b"junk", "deflate", "not deflate"),
        (ANSWER, "br", "'br' is not read"),
    ],
)
def test_what_cannot_be_unpacked_is_an_error(body: bytes, encoding: str, says: str) -> None:
    """Bombs, what was cut, what was added, what is something else."""
    with pytest.raises(WireError, match=says):
        decode(body, encoding)
