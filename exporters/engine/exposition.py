"""The grammar of one sample line of the Prometheus text format, for the lines that need care.

Works on bytes and keeps label values escaped as they stand: a value that came in well escaped goes
out as it came. The quick path in translate.py calls this only for a line it has not seen before.
"""

import re

_NAME = rb"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = re.compile(rb'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\\n]|\\.)*)"[ \t]*')
_SAMPLE_NAME = re.compile(rb"[ \t]*(" + _NAME + rb")[ \t]*")
_ESCAPED = re.compile(rb'(?:[^\\]|\\[\\n"])*\Z')
_NUMBER = re.compile(
    rb"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|[iI]nf(?:inity)?|[nN]a[nN])\Z"
)


class LineError(ValueError):
    """A line that the format does not allow; the text says what is wrong with it."""


def split_sample(line: bytes) -> tuple[bytes, bytes, bytes]:
    """A sample line to (name, label text between the braces, value text); raises LineError.

    Drops a timestamp and an OpenMetrics exemplar. The label text of a line without braces is empty.
    """
    start = _SAMPLE_NAME.match(line)
    if start is None:
        raise LineError("no metric name at the start")
    at, labels = start.end(), b""
    if line[at : at + 1] == b"{":
        end = _labels_end(line, at + 1)
        labels, at = line[at + 1 : end], end + 1
    fields = line[at:].split()
    if not fields:
        raise LineError("no value")
    if len(fields) > 2 and fields[1] != b"#" and fields[2] != b"#":
        raise LineError("text after the value and timestamp")
    return start.group(1), labels, fields[0]


def _labels_end(line: bytes, at: int) -> int:
    while line[at : at + 1] != b"}":
        label = _LABEL.match(line, at)
        if label is None:
            raise LineError('a label that is not name="value", or a brace that is not closed')
        at = label.end()
        if line[at : at + 1] == b",":
            at += 1
        elif line[at : at + 1] != b"}":
            raise LineError("no comma or closing brace after a label")
    return at


def parse_labels(text: bytes) -> dict[bytes, bytes]:
    """The text between the braces to name -> value, values still escaped; raises LineError."""
    labels: dict[bytes, bytes] = {}
    at = 0
    while at < len(text):
        label = _LABEL.match(text, at)
        if label is None:
            raise LineError('a label that is not name="value"')
        name, value = label.groups()
        if name in labels:
            raise LineError(f"label {name.decode()} stands twice")
        if b"\\" in value and not _ESCAPED.match(value):
            raise LineError(f'label {name.decode()}: an escape other than \\\\, \\" and \\n')
        labels[name] = value
        at = label.end()
        if at < len(text) and text[at : at + 1] != b",":
            raise LineError("no comma between two labels")
        at += 1
    check_utf8(text)
    return labels


def check_utf8(text: bytes) -> None:
    """Raises LineError for a label text that Prometheus would refuse the whole scrape for."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise LineError("a label value that is not UTF-8") from error


def parse_number(text: bytes) -> float:
    """A value as Prometheus reads it (no underscores, no hex, no spaces); raises LineError."""
    if not _NUMBER.match(text):
        raise LineError("a value that is not a number")
    return float(text)


def escape(text: str) -> bytes:
    """A label value as it stands between the quotes."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"').encode()
