"""Shapes as people type them."""

import pytest

from loadtests.shape_text import parse_shape


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("flat:5:10", [(10, 5, 5)]),
        ("soak:5:3600", [(3600, 5, 5)]),
        ("ramp:1:20:60", [(60, 1, 20)]),
        ("steps:1@60,4@120", [(60, 1, 1), (120, 4, 4)]),
        ("spike:1:30:4:2:10", [(4, 1, 1), (2, 30, 30), (4, 1, 1)]),
        ("pulses:1:50:2:70", [(2, 50, 50), (58, 1, 1), (2, 50, 50), (8, 1, 1)]),
    ],
)
def test_forms(text: str, segments: list[tuple[float, float, float]]) -> None:
    """Each form gives its straight pieces: (seconds, from, to)."""
    assert [(s.duration_s, s.start, s.end) for s in parse_shape(text)] == segments


@pytest.mark.parametrize(
    "text",
    [
        "",
        "wave:1:2",
        "ramp:1:2",
        "flat:x:3",
        "steps:1",
        "spike:1:2:8:4:10",
        "flat:1:inf",
        "steps:nan@3",
        "pulses:1:20:10:1e10",
    ],
)
def test_nonsense_is_refused_with_the_forms(text: str) -> None:
    """The error shows the text and every form."""
    with pytest.raises(ValueError, match=r"shape .*pulses:BASE"):
        parse_shape(text)
