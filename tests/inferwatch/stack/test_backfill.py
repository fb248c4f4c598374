"""Which series a history is made of, and which histories are refused."""

from pathlib import Path

import pytest

from inferwatch.stack.backfill import ServiceHistory, Written, backfill
from inferwatch.stack.blocks import ConstantSeries
from inferwatch.stack.errors import StackError
from slo import spec

UNTIL = 1_800_014_400


def written_with(
    folder: Path, hours: float | None = None
) -> tuple[Written, dict[tuple[str, str], list[str]]]:
    """Write with a stand-in for promtool; return the summary and (record, SLO id) -> its lines' ends."""
    script, inputs = folder / "promtool", folder / "inputs"
    script.write_text(f'#!/bin/sh\nfor a; do case "$a" in *.om) cat "$a" >> "{inputs}";; esac; done\n')
    script.chmod(0o755)
    written = backfill(
        spec.load(), folder / "data", [ServiceHistory("llm", "tiny", 3.0)], script, UNTIL, hours
    )
    found: dict[tuple[str, str], list[str]] = {}
    for line in inputs.read_text().splitlines():
        if line != "# EOF":
            name, _, rest = line.partition("{")
            labels, _, value = rest.partition("} ")
            assert 'service="llm"' in labels
            assert 'model="tiny"' in labels
            slo = labels.split('sloth_id="')[1].split('"')[0]
            found.setdefault((name, slo), []).append(value)
    return written, found


def test_each_slo_gets_its_six_records_at_their_steps(tmp_path: Path) -> None:
    """
    An hour at 5 s is 721 samples with both ends, three days at 60 s 4321 and at 300 s 865.

    The last sample is a step before the end.
    """
    written, found = written_with(tmp_path)
    slos = {
        f"llm-{s}"
        for s in ("availability", "request-latency", "time-to-first-token", "time-per-output-token")
    }
    assert {slo for _, slo in found} == slos
    for slo in slos:
        for record, count, last in (
            ("rate", 721, UNTIL - 5),
            ("avg1m", 4321, UNTIL - 60),
            ("avg5m", 865, UNTIL - 300),
        ):
            total = found[f"slo:sli_total_events:{record}", slo]
            bad = found[f"slo:sli_bad_events:{record}", slo]
            assert (len(total), total[-1]) == (count, f"3.0 {last}")
            assert (len(bad), bad[-1]) == (count, f"0.0 {last}")
    assert written.series == len(found) == 24
    assert written.samples == 4 * 2 * (721 + 4321 + 865)
    assert (written.first, written.last) == (UNTIL - 300 * 865, UNTIL - 5)


def test_hours_bound_the_past(tmp_path: Path) -> None:
    """Half an hour is 361 samples at 5 s and 31 at 60 s."""
    _, found = written_with(tmp_path, hours=0.5)
    assert len(found["slo:sli_total_events:rate", "llm-availability"]) == 361
    assert len(found["slo:sli_total_events:avg1m", "llm-availability"]) == 31


def test_series_of_the_callers_own_are_written_beside_it(tmp_path: Path) -> None:
    """In the same run, since the directory is written once; three samples at 30 s."""
    script, inputs = tmp_path / "promtool", tmp_path / "inputs"
    script.write_text(f'#!/bin/sh\nfor a; do case "$a" in *.om) cat "$a" >> "{inputs}";; esac; done\n')
    script.chmod(0o755)
    own = ConstantSeries("own:record", {"service": "llm"}, 0.5, UNTIL - 90, UNTIL, 30)
    history = [ServiceHistory("llm", "tiny", 3.0)]
    written = backfill(spec.load(), tmp_path / "data", history, script, UNTIL, 1.0, more=(own,))

    lines = [line for line in inputs.read_text().splitlines() if line.startswith("own:record")]
    assert lines == [f'own:record{{service="llm"}} 0.5 {UNTIL - back}' for back in (90, 60, 30)]
    assert written.series == 25


@pytest.mark.parametrize(
    ("services", "says"),
    [
        ([], "at least one service"),
        ([ServiceHistory("chat", "m", 1)], "no service 'chat'.*it has llm"),
        ([ServiceHistory("llm", "m", 1), ServiceHistory("llm", "m", 2)], "stands twice; add"),
        ([ServiceHistory("llm", "m", -1)], "-1 requests per second; give"),
        ([ServiceHistory("llm", "m", float("nan"))], "nan requests per second; give"),
    ],
)
def test_a_history_that_cannot_be_is_refused(
    tmp_path: Path, services: list[ServiceHistory], says: str
) -> None:
    """Before anything is written."""
    with pytest.raises(StackError, match=says):
        backfill(spec.load(), tmp_path / "data", services, tmp_path / "promtool")
    with pytest.raises(StackError, match="give more than 0"):
        backfill(
            spec.load(), tmp_path / "data", [ServiceHistory("llm", "m", 1)], tmp_path / "promtool", hours=0
        )
    assert not (tmp_path / "data").exists()
