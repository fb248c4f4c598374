"""The shipped configuration in the real collector: which traces it keeps, and that none of them is lost."""

import json
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from inferwatch.collector.firing import written
from inferwatch.stack import state
from inferwatch.stack.state import State

from . import otlp

pytestmark = pytest.mark.integration
FLUSH = 15.0
"""Seconds until a span is seen in the metrics at the latest: a batch and the flush interval, on a busy machine."""


def test_production_keeps_what_matters_a_share_of_the_rest_and_counts_everything(tmp_path: Path) -> None:
    """Errors, slow traces, slow first tokens, slow stages and firing models stay; of 600 others the share by id."""
    firing = tmp_path / "firing.yaml"
    firing.write_text('["burning"]\n')
    plain = [otlp.span("plain") for _ in range(600)]
    special = {
        "failed": otlp.span("failed", status=otlp.ERROR),
        "slow": otlp.span("slow", seconds=2.1),
        "late": otlp.span("llm_request", seconds=1.0, more={"gen_ai.latency.time_to_first_token": 0.6}),
        "stage": otlp.span("rag retrieval", seconds=0.25, more={"rag.stage": "retrieval"}),
        "burning": otlp.span("chat burning", more={"gen_ai.request.model": "burning"}),
    }
    trace = special["failed"]["traceId"]
    sibling = otlp.span("sibling", trace=trace, parent=special["failed"]["spanId"])
    in_share = {one["traceId"] for one in plain if int(one["traceId"][-4:], 16) < 655}
    shown: set[str] = set()

    def counted(collector: otlp.Collector) -> float:
        page = collector.metrics()
        shown.update(re.findall(r'trace_id="([0-9a-f]{32})"', page))
        return otlp.total(page, "traces_span_metrics_calls_total")

    with otlp.collector(
        tmp_path, environment="production", INFERWATCH_FIRING_MODELS=f"${{file:{firing}}}"
    ) as collector:
        for start in range(0, 600, 100):
            collector.send(*plain[start : start + 100])
        collector.send(*special.values(), sibling)
        total = 600 + len(special) + 1
        otlp.until(lambda: counted(collector) == total, FLUSH, "all were counted")
        otlp.until(
            lambda: len(collector.written()) >= 6 + len(in_share), 30, "the interesting ones were kept"
        )
        time.sleep(2.0)
        kept = {one["traceId"] for one in collector.written()}
        names = collector.names()

    assert kept == in_share | {one["traceId"] for one in special.values()}
    assert "sibling" in names
    assert shown
    assert shown <= kept


def test_staging_keeps_every_trace(tmp_path: Path) -> None:
    """A hundred uninteresting traces, a hundred kept."""
    plain = [otlp.span("plain") for _ in range(100)]
    with otlp.collector(tmp_path) as collector:
        collector.send(*plain)
        otlp.until(lambda: len(collector.written()) == 100, 30, "all were written")

        assert {one["traceId"] for one in collector.written()} == {one["traceId"] for one in plain}


def test_a_dead_backend_loses_nothing_over_the_collectors_own_restart(tmp_path: Path) -> None:
    """What was kept while Jaeger was down waits on disk: another collector, started later, delivers all of it."""
    (backend,) = otlp.free_ports(1)
    env = {
        "INFERWATCH_TRACE_EXPORTERS": "[otlp_grpc/jaeger]",
        "INFERWATCH_JAEGER_ENDPOINT": f"127.0.0.1:{backend}",
    }
    first = [otlp.span("while dead") for _ in range(50)]
    with otlp.collector(tmp_path / "front", **env) as collector:
        collector.send(*first)
        time.sleep(4.0)
        collector.send(otlp.span("undecided"))
    with (
        otlp.collector(tmp_path / "backend", INFERWATCH_OTLP_GRPC_PORT=str(backend)) as keeper,
        otlp.collector(tmp_path / "front", **env),
    ):
        otlp.until(lambda: len(keeper.written()) == 51, 60, "all spans reached the backend")

        assert {one["traceId"] for one in first} < {one["traceId"] for one in keeper.written()}


def test_a_reload_of_the_sampler_keeps_counts_and_traces(tmp_path: Path) -> None:
    """The first collector counts and passes on; the second is reloaded with a new list while traces come."""
    firing = tmp_path / "firing.yaml"
    firing.write_text("[]\n")
    sampler_env = {
        "INFERWATCH_TRACE_INTAKE": "[memory_limiter]",
        "INFERWATCH_FIRING_MODELS": f"${{file:{firing}}}",
    }
    with otlp.collector(tmp_path / "sampler", environment="production", **sampler_env) as sampler:
        front_env = {
            "INFERWATCH_TRACE_CHOICE": "[filter/links, batch]",
            "INFERWATCH_TRACE_EXPORTERS": "[otlp_grpc/jaeger]",
            "INFERWATCH_JAEGER_ENDPOINT": f"127.0.0.1:{sampler.grpc}",
        }
        with otlp.collector(tmp_path / "front", environment="production", **front_env) as front:
            sent = keep_sending(front, 8.0, lambda: reload_with(sampler, firing, ["tiny"]))
            otlp.until(
                lambda: front.sample("traces_span_metrics_calls_total") == len(sent),
                FLUSH,
                "all were counted",
            )
            errors = {one["traceId"] for one in sent if one["name"] == "failed"}
            otlp.until(
                lambda: errors <= {one["traceId"] for one in sampler.written()}, 40, "all errors were kept"
            )
            late = [otlp.span("chat tiny", more={"gen_ai.request.model": "tiny"}) for _ in range(20)]
            front.send(*late)
            otlp.until(
                lambda: {one["traceId"] for one in late} <= {one["traceId"] for one in sampler.written()},
                30,
                "every trace of the firing model was kept",
            )


def test_a_models_name_is_a_name_whatever_it_looks_like(tmp_path: Path) -> None:
    """A firing model called like an instruction to the collector: it starts, and keeps that model's traces."""
    firing = tmp_path / "firing.yaml"
    model = "${nope:x}-${env:HOME}"
    firing.write_text(written([model]))
    with otlp.collector(
        tmp_path, environment="production", INFERWATCH_FIRING_MODELS=f"${{file:{firing}}}"
    ) as collector:
        collector.send(otlp.span("chat", trace="a" * 28 + "ffff", more={"gen_ai.request.model": model}))
        otlp.until(lambda: len(collector.written()) == 1, 30, "the trace was kept")


def reload_with(sampler: otlp.Collector, firing: Path, models: list[str]) -> None:
    """As the watcher does."""
    firing.write_text(json.dumps(models))
    otlp.signal(sampler.record, signal.SIGHUP)


def keep_sending(front: otlp.Collector, seconds: float, in_the_middle: Any) -> list[otlp.Json]:
    """Send an error and a plain trace every 100 ms; something happens half-way."""
    sent: list[otlp.Json] = []
    happens = threading.Timer(seconds / 2, in_the_middle)
    happens.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pair = [otlp.span("failed", status=otlp.ERROR), otlp.span("plain")]
        front.send(*pair)
        sent += pair
        time.sleep(0.1)
    happens.join()
    return sent


RULE = {
    "groups": [
        {
            "name": "test",
            "interval": "1s",
            "rules": [
                {
                    "alert": "Burning",
                    "expr": "vector(1)",
                    "labels": {"severity": "page", "model": "burning"},
                }
            ],
        }
    ]
}


def test_a_real_alert_makes_the_sampler_keep_its_models_traces(tmp_path: Path) -> None:
    """Prometheus fires, the watcher sees it, writes the list and signals the sampler: from then on all are kept."""
    firing = tmp_path / "firing.yaml"
    firing.write_text("[]\n")
    with (
        otlp.collector(
            tmp_path / "sampler", environment="production", INFERWATCH_FIRING_MODELS=f"${{file:{firing}}}"
        ) as sampler,
        otlp.running(otlp.prometheus(tmp_path, RULE), tmp_path) as prometheus,
    ):
        plain = [otlp.span("plain", trace="a" * 28 + "ffff", more={"gen_ai.request.model": "burning"})]
        sampler.send(*plain)
        time.sleep(3.0)
        assert sampler.written() == []
        state.save(tmp_path / "state.json", State(19000, None, {"collector": sampler.record}))
        with otlp.running(otlp.watcher(tmp_path, firing, prometheus.url), tmp_path) as watcher:
            reloads = "inferwatch_sampler_reloads_total"
            otlp.until(lambda: otlp.total(otlp.get(f"{watcher.url}/metrics"), reloads) == 1, 30, "a signal")
            assert json.loads(firing.read_text()) == ["burning"]
            late = [
                otlp.span("late", trace=f"{n:028x}ffff", more={"gen_ai.request.model": "burning"})
                for n in range(1, 21)
            ]
            other = otlp.span("other", trace="b" * 28 + "ffff", more={"gen_ai.request.model": "calm"})
            # It is healthy until the signal reaches it, too: what it gets before its restart is judged by the old list.
            otlp.until(lambda: starts(sampler) == 2, 20, "the sampler has started again")
            sampler.send(*late, other)
            otlp.until(lambda: len(sampler.written()) == 20, 30, "all of the firing model's were kept")
            assert sampler.names() == {"late"}


def starts(collector: otlp.Collector) -> int:
    """How often its pipelines were started, as its log says."""
    log = collector.folder / "log" / "collector.log"
    return log.read_text(encoding="utf-8").count("Everything is ready")
