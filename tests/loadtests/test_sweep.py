"""Grids and pages, on a runner whose answers are known by a formula."""

import dataclasses
import socket
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from loadtests import identity
from loadtests import sweep as sweep_module
from loadtests.engineproc import EngineError
from loadtests.plan import LoadPlan, closed, open_loop, parse_plan
from loadtests.sweep import SweepPoint, read_points, run_sweep
from loadtests.sweepplan import SweepPlan, apply
from loadtests.verdict import GateExit

from .sweeppoints import PATIENT, PLAN, SPEC, a_sweep, measured_by, ten_a_slot

ASKING = {**PLAN.model_dump(), "prompts_file": "q.jsonl", "keep_text": True}


def test_grid_measures_every_combination(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two rates times two prompt lengths are four points, in order, each in its folder."""
    measured = measured_by(monkeypatch, ten_a_slot)
    points = run_sweep(
        a_sweep(axes={"rate": [5, 20], "prompt_tokens": [10, 20]}), tmp_path, SPEC, lambda _: None
    )

    expected = [{"rate": r, "prompt_tokens": p} for r in (5, 20) for p in (10, 20)]
    assert measured == [(settings, 2) for settings in expected]
    assert [point.kept for point in points] == [True, True, False, False]
    assert len({point.folder for point in points}) == 4
    assert [dataclasses.replace(p, folder=Path()) for p in read_points(tmp_path)] == [
        dataclasses.replace(p, folder=Path()) for p in points
    ]


def test_what_was_measured_outlives_an_engine_that_does_not_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of three settings the third breaks: the two before it are there to be read."""
    measured_by(monkeypatch, ten_a_slot)
    measure = sweep_module._point

    def breaks(sweep: SweepPlan, settings: dict[str, Any], *rest: Any) -> SweepPoint:
        if settings["slots"] == 3:
            raise EngineError("out of memory")
        return measure(sweep, settings, *rest)

    monkeypatch.setattr(sweep_module, "_point", breaks)
    with pytest.raises(EngineError):
        run_sweep(a_sweep(axes={"rate": [5], "slots": [1, 2, 3]}), tmp_path, SPEC, lambda _: None)

    assert [point.settings["slots"] for point in read_points(tmp_path)] == [1, 2]


def test_settings_become_plans() -> None:
    """rate and users make arrivals of the sweep's length, other names fields; engine flags leave the plan alone."""
    rate = apply(PLAN, {"rate": 7, "engine.block_size": 16}, 30)
    users = apply(PLAN, {"users": 3, "prompt_tokens": "uniform:1:9"}, 30)

    assert rate.arrival == open_loop(7, 30)
    assert users.arrival == closed(3, 30)
    assert str(users.prompt_tokens) == "uniform:1:9"
    assert isinstance(rate, LoadPlan)


def test_a_swept_level_keeps_how_requests_come() -> None:
    """Bursts stay bursts at another rate, and clients go on thinking."""
    bursty = parse_plan(
        {
            "base_url": "http://h:1",
            "model": "m",
            "arrival": open_loop(1, 1, "gamma").model_dump() | {"burstiness": 0.5},
        }
    )
    thinking = parse_plan({"base_url": "http://h:1", "model": "m", "arrival": closed(1, 1, think_s=2.0)})

    rate, users = apply(bursty, {"rate": 7}, 30).arrival, apply(thinking, {"users": 3}, 30).arrival

    assert (rate.process, rate.burstiness, rate.offered_requests) == ("gamma", 0.5, 210)
    assert (users.kind, users.think_s, users.duration_s) == ("closed", 2.0, 30)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"axes": {"engine.block_size": [16]}}, "how it is started"),
        ({"axes": {"rate": []}}, "has no value"),
        ({"axes": {"rate": [1]}, "search": {"low": 1, "high": 2}}, "cannot be an axis"),
        ({"search": {"low": 3, "high": 2}}, "not above low"),
        ({"unknown": 1}, "unknown"),
        ({"plan": ASKING, "axes": {"prompt_tokens": [8, 16]}}, "truncate_prompts: true cuts them"),
        (
            {"plan": ASKING, "axes": {"rate": [1]}, "scores": {"values": [{"rate": 1, "score": 2}]}},
            "two figures of quality",
        ),
        (
            {"axes": {"n": [1]}, "scores": {"values": [{"n": 2, "score": 1}]}},
            "n: 2 is not among the axes' values",
        ),
        (
            {"axes": {"n": [1]}, "scores": {"values": [{"m": 1, "score": 1}]}},
            "m: 1 is not among the axes' values",
        ),
        ({"axes": {"n": [1]}, "scores": {"values": [{"n": 1}]}}, "score: NUMBER"),
        ({"axes": {"n": [1]}, "scores": {"values": [{"n": 1, "score": "good"}]}}, "score: NUMBER"),
        ({"axes": {"n": [1]}, "scores": {"values": [{"score": 1}]}}, "one at least"),
        (
            {"axes": {"n": [1]}, "scores": {"values": [{"n": 1, "score": 1}, {"n": 1, "score": 2}]}},
            "values.1: {'n': 1} has a score already",
        ),
    ],
)
def test_sweeps_that_make_no_sense_are_refused(changes: dict[str, Any], said: str) -> None:
    """Each with its reason."""
    with pytest.raises(ValidationError, match=said):
        a_sweep(**changes)


def test_engine_is_restarted_per_flag_set_only(tmp_path: Path, server: Any) -> None:
    """Points under the same flags come together, so one start serves them all."""
    sweep = a_sweep(
        axes={"engine.block_size": [16, 32], "rate": [1, 2]},
        engine={"command": ["engine"]},
    )
    groups = list(sweep_module._by_engine(sweep))

    assert groups == [({"engine.block_size": size}, [{"rate": 1}, {"rate": 2}]) for size in (16, 32)]


def test_an_engine_gets_its_flags_and_is_gone_after(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command is started once a flag set with the flag appended, and ended before the next."""
    measured_by(monkeypatch, ten_a_slot)
    server = (
        "import http.server,sys;open(sys.argv[2],'a').write(' '.join(sys.argv[3:])+chr(10));"
        "h=type('H',(http.server.BaseHTTPRequestHandler,),{'do_GET':lambda s:(s.send_response(200),s.end_headers())});"
        "http.server.HTTPServer(('127.0.0.1',int(sys.argv[1])),h).serve_forever()"
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = tmp_path / "started"
    plan = parse_plan({"base_url": f"http://127.0.0.1:{port}", "model": "m", "arrival": open_loop(1, 1)})
    engine = {"command": [sys.executable, "-c", server, str(port), str(started)], "ready_s": 20}
    axes = {"engine.slots": [1, 2], "rate": [5, 15]}
    points = run_sweep(a_sweep(plan=plan, axes=axes, engine=engine), tmp_path, SPEC, lambda _: None)

    assert started.read_text(encoding="utf-8") == "--slots 1\n--slots 2\n"
    assert len(points) == 4


def test_a_real_point(server: Any, tmp_path: Path) -> None:
    """One point against the mock server: measured, judged (too few samples), its identity kept."""
    plan = parse_plan({"base_url": server.url, "model": "ok", "arrival": open_loop(1, 1), "output_tokens": 2})
    sweep = SweepPlan.model_validate({"plan": plan, "seconds": 1.5, "axes": {"rate": [20]}})
    (point,) = run_sweep(sweep, tmp_path, PATIENT, lambda _: None)

    assert point.code is GateExit.TOO_FEW_SAMPLES
    assert [line.split(":")[0] for line in point.why] == ["latency", "errors"]
    assert point.latency_s("ttft_s", "p95") is not None
    assert (point.folder / "identity.json").exists()


def test_a_point_that_is_refused_everywhere_broke_its_promise(server: Any, tmp_path: Path) -> None:
    """No answer was there to be timed, but 30 of 30 requests failed: told, and compared with nothing."""
    plan = parse_plan({"base_url": server.url, "model": "refuse", "arrival": open_loop(1, 1, "constant")})
    spec = PATIENT.model_copy(update={"gate_min_samples": 10})
    (point,) = run_sweep(a_sweep(plan=plan, seconds=1.5, axes={"rate": [20]}), tmp_path, spec, lambda _: None)

    assert (point.code, point.not_compared) == (GateExit.FAILED, "too many errors")
    assert "errors: 30 of 30 requests failed (100.00% of at most 0.50%)" in point.why
    assert [one.not_compared for one in read_points(tmp_path)] == ["too many errors"]


def test_points_under_other_engine_flags_are_unlike(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server does not tell its flags, but the sweep knows them: one point is no baseline of the other."""
    monkeypatch.setattr(sweep_module, "running", lambda *_: nullcontext())
    plan = parse_plan({"base_url": server.url, "model": "ok", "arrival": open_loop(1, 1), "output_tokens": 1})
    sweep = a_sweep(
        plan=plan,
        seconds=0.5,
        axes={"engine.max-num-seqs": [2, 4], "rate": [4]},
        engine={"command": ["engine"]},
    )
    points = run_sweep(sweep, tmp_path, PATIENT, lambda _: None)
    two, four = (identity.read(point.folder) or {} for point in points)

    assert identity.differences(two, four) == ["labels.engine.max-num-seqs: '2' against '4'"]


def test_lengths_cut_the_questions_of_a_quality_sweep() -> None:
    """prompt_tokens is an axis of questions once they are to be cut, by the plan or as an axis."""
    axes = {"prompt_tokens": [8, 16]}

    assert a_sweep(plan={**ASKING, "truncate_prompts": True}, axes=axes).axes == axes
    assert a_sweep(plan=ASKING, axes={**axes, "truncate_prompts": [True]}).axes["prompt_tokens"] == [8, 16]


def test_the_share_of_right_answers_of_a_point(server: Any, tmp_path: Path) -> None:
    """
    The server says "t0" to everything: right for one of two questions, 15 times each.

    The interval is of two questions, not of 30 answers: Wilson's for 1 of 2 is 0.5 ± 0.405.
    """
    questions = tmp_path / "q.jsonl"
    questions.write_text(
        '{"prompt": "a", "answer": "t0"}\n{"prompt": "b", "answer": "t1"}\n', encoding="utf-8"
    )
    raw = {"base_url": server.url, "model": "ok", "arrival": open_loop(1, 1, "constant"), "output_tokens": 1}
    plan = parse_plan({**raw, "prompts_file": str(questions), "keep_text": True})
    (point,) = run_sweep(
        a_sweep(plan=plan, seconds=1.5, axes={"rate": [20]}), tmp_path, PATIENT, lambda _: None
    )

    assert point.quality is not None
    assert point.quality.value == 0.5
    assert (point.quality.low, point.quality.high) == (
        pytest.approx(0.0945, abs=1e-3),
        pytest.approx(0.9055, abs=1e-3),
    )
    assert read_points(tmp_path)[0].quality == point.quality
