"""load, gate, sweep and compare as typed: options into plans, exit codes out."""

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from inferwatch.cli import main
from inferwatch.commands.load_options import load_options, plan_of
from loadtests.plan import LoadPlan, PlanError
from loadtests.shapes import level_at
from loadtests.startline import time_zero
from slo import spec as slo_spec

SPEC = slo_spec.load()


def _plan(*words: str) -> LoadPlan:
    """The plan that *words* on the command line make."""
    made: list[LoadPlan] = []

    @click.command()
    @load_options
    def probe(**wish: Any) -> None:
        made.append(plan_of(lambda: "http://127.0.0.1:1", wish, SPEC))

    probe.main(["--model", "m", *words], standalone_mode=False)
    return made[0]


def test_without_options_the_stages_of_the_spec() -> None:
    """slo.yaml says how long and how fast."""
    arrival = _plan().arrival
    stages = SPEC.load.stages

    assert arrival.kind == "open"
    assert [(s.duration_s, s.start) for s in arrival.segments] == [
        (float(stage.duration), stage.requests_per_second) for stage in stages
    ]


@pytest.mark.parametrize(
    ("words", "kind", "segments"),
    [
        (("--users", "4", "--seconds", "9"), "closed", [(9, 4, 4)]),
        (("--rate", "2.5", "--seconds", "9"), "open", [(9, 2.5, 2.5)]),
        (("--shape", "ramp:1:5:10"), "open", [(10, 1, 5)]),
        (("--users-shape", "steps:1@5,8@5"), "closed", [(5, 1, 1), (5, 8, 8)]),
    ],
)
def test_arrivals(words: tuple[str, ...], kind: str, segments: list[tuple[float, float, float]]) -> None:
    """Each way of saying when requests come."""
    arrival = _plan(*words).arrival

    assert arrival.kind == kind
    assert [(s.duration_s, s.start, s.end) for s in arrival.segments] == segments


@pytest.mark.parametrize("option", ["--shape", "--users-shape"])
def test_pulses_come_at_the_full_minute(option: str, tmp_path: Path) -> None:
    """Begun 17.5 s into a minute, the first pulse is at the next one and the second a minute later; 2 s each."""
    minute = 1_800_000_060.0  # divides by 60
    arrival = _plan(option, "pulses:1:50:2:90").arrival
    zero = time_zero(alone=True, on_the_minute=arrival.on_the_minute, clock=lambda: minute + 17.5)
    levels = {
        at: level_at(arrival.segments, minute + at - zero) for at in (60, 61.9, 62.1, 119.9, 120, 122.1)
    }

    assert levels == {60: 50, 61.9: 50, 62.1: 1, 119.9: 1, 120: 50, 122.1: 1}


def test_other_shapes_begin_at_once() -> None:
    """Only pulses are meant by the wall clock."""
    assert not _plan("--shape", "spike:1:30:4:2:10").arrival.on_the_minute
    assert not _plan("--rate", "1").arrival.on_the_minute


def test_process_trace_and_fields() -> None:
    """Burstiness, a trace with its format, and any other field of the plan as JSON or plain text."""
    bursty = _plan(
        "--rate", "3", "--process", "gamma:0.5", "--set", "abort_share=0.25", "--set", "tool_choice=required"
    )
    trace = _plan("--trace", "azure:/tmp/x.csv", "--speed", "10").arrival

    assert (bursty.arrival.process, bursty.arrival.burstiness) == ("gamma", 0.5)
    assert (bursty.abort_share, bursty.tool_choice) == (0.25, "required")
    assert (trace.kind, trace.trace_format, trace.trace_path, trace.speed) == (
        "trace",
        "azure",
        "/tmp/x.csv",
        10,
    )


@pytest.mark.parametrize(
    "words", [("--users", "1", "--rate", "1"), ("--shape", "wave:1"), ("--set", "x"), ("--rate", "0")]
)
def test_contradictions_are_usage_errors(words: tuple[str, ...]) -> None:
    """Two kinds of arrival, an unknown shape, a field without value, a rate of nothing."""
    with pytest.raises(click.UsageError):
        _plan(*words)


def test_unknown_fields_are_named() -> None:
    """A field that no plan has is an error, not ignored."""
    with pytest.raises(PlanError, match="no_such"):
        _plan("--set", "no_such=1")


def _invoke(*words: str) -> Any:
    return CliRunner().invoke(main, words)


def test_gate_without_data_and_a_crashed_gate(tmp_path: Path) -> None:
    """No run is exit 11; a gate that breaks is exit 70 and says that this is no pass."""
    table = tmp_path / "gate.md"
    empty = _invoke("gate", str(tmp_path / "none"), "--json", "--markdown", str(table))
    crashed = _invoke("gate", str(tmp_path), "--spec", str(tmp_path / "none.yaml"))

    assert (empty.exit_code, json.loads(empty.output)["outcome"]) == (11, "no_data")
    assert "Load gate: no data (exit 11)" in table.read_text(encoding="utf-8")
    assert crashed.exit_code == 70
    assert "not a pass" in crashed.output


def test_a_gate_that_cannot_tell_its_verdict_crashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that cannot be written, or a verdict that cannot be shown, is exit 70 too: nobody read the verdict."""
    (tmp_path / "file").touch()
    untold = _invoke("gate", str(tmp_path), "--markdown", str(tmp_path / "file" / "gate.md"))

    def broken(_: object) -> None:
        raise ValueError("no such outcome")

    monkeypatch.setattr("loadtests.verdict.verdict_json", broken)
    unshown = _invoke("gate", str(tmp_path), "--json")

    assert (untold.exit_code, unshown.exit_code) == (70, 70)
    assert str(tmp_path / "file") in untold.output and "not a pass" in untold.output
    assert "no such outcome" in unshown.output


def test_sweep_names_what_is_wrong_with_its_file(tmp_path: Path) -> None:
    """A bad sweep file is one clean message with exit 1."""
    path = tmp_path / "sweep.yaml"
    path.write_text("seconds: 0\n", encoding="utf-8")
    result = _invoke("sweep", str(path), "--out", str(tmp_path / "out"))

    assert result.exit_code == 1
    assert str(path) in result.output
    assert "seconds" in result.output


def test_sweep_is_drawn_again_with_scores_that_came_later(tmp_path: Path) -> None:
    """Nothing is sent: the points are read, and the page weighs the user's own figure."""
    latency = {name: {"p95": 0.2} for name in ("ttft_s", "e2e_s")}
    point = {"folder": "point-000", "code": "passed", "why": [], "many_errors": False, "quality": None}
    point["summary"] = {"latency": latency, "rates": {"output_tokens_per_s": 9.0}, "error_ratio": 0.0}
    points = [{**point, "settings": {"temperature": value}} for value in (0.5, 1.0)]
    (tmp_path / "points.json").write_text(json.dumps(points), encoding="utf-8")
    path = tmp_path / "sweep.yaml"
    path.write_text(
        "plan: {base_url: 'http://127.0.0.1:9', model: m, arrival: {kind: closed, segments: [{duration_s: 1, start: 1, "
        "end: 1}]}}\nseconds: 1\naxes: {temperature: [0.5, 1.0]}\n"
        "scores: {name: MMLU, values: [{temperature: 0.5, score: 71.5}, {temperature: 1.0, score: 70}]}\n",
        encoding="utf-8",
    )
    result = _invoke("sweep", str(path), "--out", str(tmp_path), "--redraw")

    assert result.exit_code == 0
    assert "| 71.5 |" in (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "MMLU" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_sweep_without_points_cannot_be_drawn_again(tmp_path: Path) -> None:
    """The file that is missing is named."""
    path = tmp_path / "sweep.yaml"
    path.write_text(
        "plan: {base_url: 'http://127.0.0.1:9', model: m, arrival: {kind: closed, segments: [{duration_s: 1, start: 1, "
        "end: 1}]}}\nseconds: 1\n",
        encoding="utf-8",
    )
    result = _invoke("sweep", str(path), "--out", str(tmp_path), "--redraw")

    assert result.exit_code == 1
    assert "points.json" in result.output


def test_compare_names_a_folder_that_holds_no_run(tmp_path: Path) -> None:
    """A folder without a run is told by its path."""
    result = _invoke("compare", str(tmp_path))

    assert result.exit_code == 1
    assert "neither a load run nor rounds" in result.output
