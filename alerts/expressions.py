"""A PromQL expression -> the names, ranges and comparisons in it; enough for review, no full parser."""

import re
from dataclasses import dataclass

from slo.duration import parse_seconds

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|`[^`]*`')
_BRACES = re.compile(r"\{[^{}]*\}")
_COMMENT = re.compile(r"#[^\n]*")
_LABEL_LIST = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)")
_DURATION = re.compile(r"\[[^\]]*\]|\boffset\s+-?[0-9a-z]+")
_NAME = re.compile(r"(?<![\w:.])[a-zA-Z_:][\w:]*(?!\s*\(|[\w:])")
_RANGE = re.compile(r"\b(\w+)\s*\(\s*(?:[0-9.]+\s*,\s*)?([a-zA-Z_:][\w:]*)?\s*(\{[^{}]*\})?\s*\[(\w+)\]")
_LIMIT = re.compile(r"(>=|<=|==|!=|>|<)\s*(?:bool\s+)?(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)")
_KEYWORDS = frozenset(
    [
        "and",
        "or",
        "unless",
        "bool",
        "offset",
        "by",
        "without",
        "on",
        "ignoring",
        "group_left",
        "group_right",
        "inf",
        "nan",
        "start",
        "end",
    ]
)


@dataclass(frozen=True)
class RangeCall:
    """A function over a range, such as rate(x{job="a"}[5m]); `metric` may be missing."""

    function: str
    metric: str
    matchers: str
    seconds: int


def metric_names(expression: str) -> frozenset[str]:
    """Return the metrics that an expression reads."""
    plain = _COMMENT.sub("", _QUOTED.sub('""', expression))
    plain = _LABEL_LIST.sub("", _DURATION.sub("", _BRACES.sub("", plain)))
    return frozenset(n for n in _NAME.findall(plain) if n.lower() not in _KEYWORDS)


def range_calls(expression: str) -> tuple[RangeCall, ...]:
    """Return the functions over ranges whose argument is a plain selector."""
    return tuple(
        RangeCall(function, metric or "", matchers or "", parse_seconds(length))
        for function, metric, matchers, length in _RANGE.findall(_COMMENT.sub("", expression))
    )


def limits(expression: str) -> tuple[float, ...]:
    """Return the numbers that something is compared with."""
    return tuple(float(number) for _, number in _LIMIT.findall(_QUOTED.sub('""', expression)))
