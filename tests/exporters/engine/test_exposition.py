"""One sample line, taken apart: what the format allows and what it does not."""

import pytest

from exporters.engine.exposition import LineError, escape, parse_labels, parse_number, split_sample


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (b'a{b="c"} 1', (b"a", b'b="c"', b"1")),
        (b"a 1", (b"a", b"", b"1")),
        (b'a{b="c} d",} 1 1700000000000', (b"a", b'b="c} d",', b"1")),
        (b'a{b="c\\"} "}  1.5', (b"a", b'b="c\\"} "', b"1.5")),
        (b'a_bucket{le="1"} 5 # {trace="x"} 0.7', (b"a_bucket", b'le="1"', b"5")),
        (b'a_bucket{le="1"} 5 1.7e9 # {trace="x"} 0.7 1.7e9', (b"a_bucket", b'le="1"', b"5")),
        (b'a { b = "c" } 1', (b"a", b' b = "c" ', b"1")),
    ],
)
def test_a_line_is_taken_apart(line, parts):
    """Name, label text and value; quoted braces do not end the labels."""
    assert split_sample(line) == parts


@pytest.mark.parametrize(
    "line", [b"", b"{} 1", b'a{b="c"', b'a{b="c"}', b"a{b=c} 1", b'a{b="c" d="e"} 1', b"a 1 2 3"]
)
def test_a_line_that_is_none_is_an_error(line):
    """Each is refused, none is guessed at."""
    with pytest.raises(LineError):
        split_sample(line)


def test_labels_are_read_once_each():
    """Values stay escaped; a trailing comma is allowed; a label twice is not."""
    assert parse_labels(b'a="1",b="\\\\x\\n\\"",') == {b"a": b"1", b"b": b'\\\\x\\n\\"'}
    for text in (b'a="1",a="2"', b'a="\\q"', b'a="\xff"', b'a="1"b="2"', b"a"):
        with pytest.raises(LineError):
            parse_labels(text)


@pytest.mark.parametrize(
    ("text", "value"), [(b"1", 1), (b"1.", 1), (b".5", 0.5), (b"-2e-3", -0.002), (b"+Inf", float("inf"))]
)
def test_numbers_are_read_as_prometheus_reads_them(text, value):
    """The spellings that Go's parser takes."""
    assert parse_number(text) == value


@pytest.mark.parametrize("text", [b"1_0", b"0x1", b"", b" 1", b"1e", b"--1", b"nano"])
def test_other_spellings_are_no_numbers(text):
    """What Go's parser refuses is refused here, Python's tastes aside."""
    with pytest.raises(LineError):
        parse_number(text)


def test_escaping_is_what_the_format_asks():
    """Backslash, quote and line break; nothing else."""
    assert escape('a\\b"c\nd é') == b'a\\\\b\\"c\\nd ' + "é".encode()
