"""Intervals against textbook values, and the pages made of them."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from loadtests import page, plots
from loadtests.compare import Figure, column, differs, mean, quantile, ratio
from loadtests.plan import open_loop, parse_plan
from loadtests.records import RequestRecord, from_mapping
from loadtests.run import LoadResult


def _result(ttft: float, count: int = 400) -> LoadResult:
    plan = parse_plan({"base_url": "http://h:1", "model": "m", "arrival": open_loop(count / 10, 10)})
    records = []
    for number in range(count):
        at = number * 10 / count
        values: dict[str, Any] = {field.name: None for field in dataclasses.fields(RequestRecord)}
        values |= {
            "worker": 0,
            "seq": number,
            "attempt": 0,
            "endpoint": "chat",
            "stream": True,
            "trace_id": "t",
        }
        values |= {
            "scheduled_s": at,
            "started_s": at,
            "sent_s": at,
            "first_token_s": at + ttft + number / 1e4,
        }
        values |= {"last_token_s": at + 1, "end_s": at + 1, "wall_offset_s": 0.0, "clock": "kernel"}
        values |= {"outcome": "ok", "done_seen": True, "will_retry": False, "output_tokens": 5, "chunks": 2}
        values |= {"tokens_source": "server", "bytes_in": 1, "chunk_gaps_ns": (10**8,)}
        records.append(from_mapping(values))
    result = LoadResult(Path("x"), plan, 0.0, 9.0, 0, False)
    result.__dict__.update(records=tuple(records), health=())
    return result


def test_quantile_interval_of_order_statistics() -> None:
    """Median of 1..100: 50; 50 ± 1.96·5 → ranks 40 and 61 (the interval of the textbook)."""
    figure = quantile(list(map(float, range(1, 101))), 50)

    assert (figure.value, figure.low, figure.high) == (50, 40, 61)


def test_too_few_samples_have_no_interval() -> None:
    """P99 of 100 samples has no upper order statistic at 95 %; nothing has no value."""
    assert quantile(list(map(float, range(100))), 99) == Figure(98.0)
    assert quantile([], 50) == Figure(None)


def test_mean_with_students_interval() -> None:
    """1, 2, 3: mean 2, sd 1, t(0.975, 2) = 4.303: 2 ± 4.303/√3 = 2 ± 2.484."""
    figure = mean([1.0, 2.0, 3.0])

    assert figure.low == pytest.approx(2 - 2.484, abs=1e-3)
    assert figure.high == pytest.approx(2 + 2.484, abs=1e-3)
    assert (mean([4.0]), mean([])) == (Figure(4.0), Figure(None))


def test_ratio_with_wilsons_interval() -> None:
    """1 of 10: 0.1, Wilson 0.0179 to 0.4042 (tabled); 0 of 0 is unknown."""
    figure = ratio(1, 10)

    assert figure.value == 0.1
    assert (figure.low, figure.high) == (pytest.approx(0.0179, abs=1e-4), pytest.approx(0.4042, abs=1e-4))
    assert ratio(0, 0) == Figure(None)


def test_differs_only_when_both_intervals_are_known_and_apart() -> None:
    """Touching intervals are no difference, a missing one is no answer."""
    low, high, none = Figure(1, 0.5, 1.5), Figure(3, 2.0, 4.0), Figure(3)

    assert (differs(low, high), differs(low, Figure(2, 1.5, 3)), differs(low, none)) == (True, False, None)


def test_markdown_and_html_mark_what_differs() -> None:
    """A build 200 ms slower to the first token is marked in every TTFT row, equal figures are not."""
    columns = [column("base", [_result(0.1), _result(0.1)]), column("new <b>", [_result(0.3), _result(0.3)])]
    text, html = page.markdown(columns, "Comparison"), page.html(columns, "Comparison")
    ttft, e2e = (
        next(line for line in text.splitlines() if line.startswith(f"| {m} P50")) for m in ("ttft", "e2e")
    )

    assert "≠" in ttft
    assert "≠" not in e2e
    assert "800 in 2 rounds" in text
    assert "new &lt;b&gt;" in html and "new <b>" not in html
    assert html.count("<svg") == 3
    assert "<script" not in html and "http://" not in html.replace('xmlns="http://www.w3.org', "")


def test_unknown_figures_are_dashes() -> None:
    """A run without an answer has no zero anywhere in its latency rows."""
    text = page.markdown([column("empty", [_result(0.1, 0)])], "x")

    assert "| ttft P95 | – |" in text
    assert "| error ratio | – |" in text


def test_charts_without_data_are_still_charts() -> None:
    """No sample draws empty axes, not an exception."""
    assert plots.distribution_chart("t", [("a", [])]).startswith("<svg")
    assert plots.scatter_chart("t", "x", "y", [], []).startswith("<svg")
