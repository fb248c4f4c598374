"""Layout of expressions, and bucket bounds as both Prometheus versions store them."""

import re

import pytest

from alerts.promql import le_matcher, promql, window


def test_lines_are_indented_by_open_brackets() -> None:
    """A bracket indents what follows; one that closes stands under the line that opened it."""
    text = """
            sum by (model) (
        rate(x{a="b"}[5m])
              or (
    y
          )
        )
    """

    assert promql(text) == 'sum by (model) (\n  rate(x{a="b"}[5m])\n  or (\n    y\n  )\n)'


def test_brackets_in_strings_do_not_indent() -> None:
    """A bracket inside a label value belongs to nobody."""
    assert promql('x{a="(("}\nor y') == 'x{a="(("}\nor y'


@pytest.mark.parametrize(
    ("bound", "selects", "leaves"),
    [
        (2.0, ["2", "2.0"], ["20", "20.0", "2.5", "12", "200"]),
        (1, ["1", "1.0"], ["10", "10.0", "1.5", "1x0"]),
        (0.5, ["0.5"], ["0.55", "5", "10.5"]),
    ],
)
def test_a_bound_is_selected_in_both_spellings_and_no_other(
    bound: float, selects: list[str], leaves: list[str]
) -> None:
    """le="1" on Prometheus 2 is le="1.0" on Prometheus 3; 10.0 is another bound."""
    matcher = le_matcher(bound)
    pattern = matcher.partition('"')[2].rstrip('"').replace("\\\\", "\\")
    exact = not matcher.startswith("le=~")

    def selected(value: str) -> bool:
        return value == pattern if exact else re.fullmatch(pattern, value) is not None

    assert [v for v in selects + leaves if selected(v)] == selects


def test_a_window_is_written_in_its_largest_unit() -> None:
    """300 s are 5m, 90 s stay 90s."""
    assert (window(300), window(90), window(86_400)) == ("[5m]", "[90s]", "[1d]")
