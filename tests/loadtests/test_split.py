"""Where the time went: client records against a stand-in of Prometheus with known answers."""

import dataclasses
import json
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

from inferwatch.cli import main
from inferwatch.promapi.prometheus import Prometheus
from loadtests.plan import closed, parse_plan
from loadtests.records import RequestRecord, from_mapping
from loadtests.run import LoadResult
from loadtests.split import split


class _Known:
    """Answers queries by the family named in them, and keeps what it was asked."""

    def __init__(self, means: dict[str, float], count: float | None) -> None:
        self._means, self._count = means, count
        self.asked: list[tuple[str, float | None]] = []

    def value(self, expr: str, *, at: float | None = None) -> float | None:
        self.asked.append((expr, at))
        if " / " not in expr:
            return self._count
        return next((mean for name, mean in self._means.items() if f"{name}_sum" in expr), None)


def _result(count: int) -> LoadResult:
    """Requests of 1 s, the first with a connection that took 0.2 s to open."""
    plan = parse_plan({"base_url": "http://h:1", "model": "m", "arrival": closed(1, 9)})
    values: dict[str, Any] = {field.name: None for field in dataclasses.fields(RequestRecord)}
    values |= {
        "outcome": "ok",
        "started_s": 5.0,
        "sent_s": 5.2,
        "end_s": 6.2,
        "scheduled_s": 5.0,
        "chunk_gaps_ns": (),
    }
    values["wall_offset_s"] = 1000.0
    records = [from_mapping({**values, "connected_s": 5.2 if n == 0 else None}) for n in range(count)]
    result = LoadResult(Path("x"), plan, 1004.0, 1010.0, 0, False)
    result.__dict__["records"] = tuple(records)
    return result


def test_the_parts_by_subtraction() -> None:
    """Client 1 s, server 0.9 s: 0.1 s network and serialisation; connect 0.2 s over four requests is 0.05 s."""
    known = _Known({"request_duration_seconds": 0.9, "request_queue_seconds": 0.3,
                    "request_prefill_seconds": 0.1, "request_decode_seconds": 0.5}, 4.04)  # fmt: skip
    found = split(_result(4), cast(Prometheus, known), 'service="llm"')

    assert found.server_rest_s == pytest.approx(0.0)
    assert found.network_s == pytest.approx(0.1)
    assert found.connect_s == pytest.approx(0.05)
    assert (found.queue_s, found.prefill_s, found.decode_s) == (0.3, 0.1, 0.5)
    assert found.same_requests
    assert all('{service="llm"}' in expr for expr, _ in known.asked)
    assert all(at == pytest.approx(1006.2 + 15) for _, at in known.asked)


def test_the_parts_add_up_to_what_the_client_waited() -> None:
    """Of the server's 0.9 s, 0.3 + 0.1 + 0.4 are named: 0.1 s is its rest; with 0.1 s of network that is the client's 1 s."""
    known = _Known({"request_duration_seconds": 0.9, "request_queue_seconds": 0.3,
                    "request_prefill_seconds": 0.1, "request_decode_seconds": 0.4}, 4.0)  # fmt: skip
    found = split(_result(4), cast(Prometheus, known), "")
    told = found.to_json()
    parts = [told[name] for name in ("network_s", "queue_s", "prefill_s", "decode_s", "server_rest_s")]

    assert found.server_rest_s == pytest.approx(0.1)
    assert sum(parts) == pytest.approx(1.0) == told["client_e2e_s"]
    assert told["same_requests"] is True
    assert "mean server rest: 100.00 ms" in found.lines()
    assert not [line for line in found.lines() if "requests" in line]


def test_other_traffic_is_told() -> None:
    """Eight requests at the engine, four of them ours; or an engine that does not say how many."""
    means = {"request_duration_seconds": 0.9}
    busy = split(_result(4), cast(Prometheus, _Known(means, 8.0)), "")
    mute = split(_result(4), cast(Prometheus, _Known(means, None)), "")

    assert busy.to_json()["same_requests"] is False
    assert (
        busy.lines()[-1] == "these are not the same requests: the engine counted 8, this run 4 good answers"
    )
    assert mute.to_json()["same_requests"] is None
    assert "unknown whether these are the same requests" in mute.lines()[-1]
    assert "mean queue: unknown" in mute.lines()


def test_what_the_engine_does_not_tell_is_unknown() -> None:
    """An engine without these histograms has no split; other traffic is noticed."""
    absent = split(_result(4), cast(Prometheus, _Known({}, None)), "")
    busy = split(_result(4), cast(Prometheus, _Known({"request_duration_seconds": 0.9}, 8.0)), "")

    assert (absent.network_s, absent.queue_s, absent.same_requests) == (None, None, None)
    assert busy.same_requests is False
    assert busy.queue_s is None


def test_a_run_without_answers_has_no_parts() -> None:
    """No successful request, no client mean."""
    found = split(_result(0), cast(Prometheus, _Known({"request_duration_seconds": 0.9}, 0.0)), "")

    assert (found.connect_s, found.network_s, found.client_e2e_s) == (None, None, None)


@pytest.mark.parametrize("form", [("--json",), ()])
def test_the_command_tells_the_split(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    """An engine that counted 8 requests where this run had 2: said in both forms of the summary."""
    known = _Known({"request_duration_seconds": 0.01}, 8.0)
    monkeypatch.setattr(Prometheus, "value", lambda _, expr, *, at=None: known.value(expr, at=at))
    monkeypatch.setattr("loadtests.split.SETTLE_S", 0.0)
    words = ["load", "--url", server.url, "--model", "ok", "--users", "1", "--set", "max_requests=2"]
    words += ["--prometheus", "http://127.0.0.1:9", "--records", str(tmp_path / "r"), *form]
    done = CliRunner().invoke(main, words)

    assert done.exit_code == 0, done.output
    if form:
        told = json.loads(done.stdout)["mean_time_split"]
        assert (told["same_requests"], told["server_e2e_s"], told["server_rest_s"]) == (False, 0.01, None)
    else:
        assert "the engine counted 8, this run 2 good answers" in done.stdout
