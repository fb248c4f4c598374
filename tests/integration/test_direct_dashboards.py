"""The dashboards on an engine that Prometheus scrapes itself: variables, annotations and every query, without our exporter."""

import re
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from dashboards.check import live
from dashboards.registry import build_all
from inferwatch.promapi import Prometheus
from inferwatch.render.variables import chosen, fill_in, window
from inferwatch.stack import backfill, binaries, config, files, launcher, services
from inferwatch.stack.progress import to_stderr
from inferwatch.stack.services import SIM_MODEL, SIM_REQUESTS_PER_SECOND
from inferwatch.stack.settings import PORT_OFFSETS, Settings, default_settings
from inferwatch.stack.state import Selection
from slo import spec as slo_spec
from slo.names import labels

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

OF_ENGINES = ("slo", "engine", "batching", "kv-cache", "load", "drift", "stack")
"""Pages that ask for llm_*; not the exporters' own, which has nothing to show without them."""

EMPTY = {
    "inferwatch-kv-cache: Capacity (A)": "vLLM says it in a label, and PromQL makes no number of a label",
    "inferwatch-stack: Probe duration (A)": "there is no probe of ours",
    "inferwatch-stack: Canary requests by result (A)": "the canary is an exporter too",
    "inferwatch-stack: Why probes failed (A)": "none fails",
    "inferwatch-stack: Notifications sent (A)": "none is sent: this Alertmanager has no way out",
    "inferwatch-slo: Alerts firing (A)": "nothing is wrong",
    "inferwatch-slo: Alerts that fire now (A)": "nothing is wrong",
    # Cells want several windows of a minute, as with an exporter (test_analysis.py waits for them).
    "inferwatch-batching: Batch size × request rate (A)": "minutes",
    "inferwatch-batching: Windows in the best region (A)": "minutes",
    "inferwatch-batching: Batch limit to set (A)": "minutes",
    "inferwatch-batching: What the best region spans (A)": "minutes",
    "inferwatch-batching: What the best region spans (B)": "minutes",
    "inferwatch-batching: What the best region spans (C)": "minutes",
    "inferwatch-batching: What the best region spans (D)": "minutes",
    "inferwatch-kv-cache: Context length × latency (A)": "minutes",
    "inferwatch-kv-cache: KV hit rate × sequence length (A)": "minutes",
}
"""Query -> why it has no data here."""


def free_base_port() -> int:
    """A base port whose whole range is free now."""
    for base in range(26_000, 32_000, 200):
        if not any(_held(base + offset) for offset in PORT_OFFSETS.values()):
            return base
    raise AssertionError("no free range of ports")


def _held(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The simulated engine, scraped by Prometheus itself, with the analysis exporter; until it is judged."""
    settings = default_settings(run_dir=tmp_path_factory.mktemp("direct") / "run", base_port=free_base_port())
    _start(settings)
    try:
        _wait_for_data(settings.url("prometheus"))
        yield settings.url("prometheus")
    finally:
        launcher.down(settings, to_stderr())


def _start(settings: Settings) -> None:
    """Engine, Alertmanager, Prometheus and the analysis exporter, and a past from which budgets are summed."""
    spec, reporter = slo_spec.load(), to_stderr()
    selection = Selection("sim", (settings.url("engine"),), "llm")
    paths = {tool: binaries.resolve(tool, settings, reporter).path for tool in ("prometheus", "alertmanager")}
    files.write_all(spec, settings, selection)
    content = config.prometheus_config(spec, settings)
    targets = settings.run_dir / "direct.json"
    address = settings.url("engine").removeprefix("http://")
    config.write_json(targets, [{"targets": [address], "labels": {"service": "llm"}}])
    jobs = {job["job_name"]: job for job in content["scrape_configs"]}
    kept = (labels.JOB_ANALYSIS, labels.JOB_PROMETHEUS, labels.JOB_ALERTMANAGER)
    content["scrape_configs"] = [config.direct_job(targets), *(jobs[name] for name in kept)]
    config.write_yaml(settings.prometheus_config, content)
    history = [backfill.ServiceHistory("llm", SIM_MODEL, SIM_REQUESTS_PER_SECOND)]
    promtool = binaries.resolve("promtool", settings, reporter).path
    backfill.backfill(spec, settings.data_dir / "prometheus", history, promtool)
    wanted = ("engine", "alertmanager", "prometheus", "exporter-analysis")
    stack = [
        one for one in services.stack_services(spec, settings, selection, paths, None) if one.name in wanted
    ]
    launcher.reconcile(settings, selection, stack, reporter)


def _wait_for_data(url: str, seconds: float = 240) -> None:
    """Return when a latency quantile, a signal, a grid of windows and a budget are there."""
    wanted = (
        "inferwatch:latency_seconds:quantile5m",
        "inferwatch:prefix_cache_hit:ratio",
        "sum(llm_analysis_windows) > 0",
        "slo:period_error_budget_remaining:ratio",
    )
    deadline = time.monotonic() + seconds
    with Prometheus(url) as prometheus:
        while missing := [expr for expr in wanted if not prometheus.query(expr)]:
            assert time.monotonic() < deadline, f"no data within {seconds} s: {missing}"
            time.sleep(2)


def boards() -> list[dict[str, Any]]:
    """The pages that are held against direct series."""
    built = build_all(slo_spec.load())
    return [dict(built[f"inferwatch-{name}"]) for name in OF_ENGINES]


def test_every_query_has_data_or_a_reason(prometheus: str) -> None:
    """Nothing is asked that direct mode lacks but what is listed; no engine is there twice."""
    canary = "inferwatch-stack: Canary requests by result: nobody exports llm_canary_requests_total"
    missing: set[str] = set()
    for _ in range(6):  # one late evaluation leaves a query without data at that instant
        report = live(boards(), prometheus, "5m", slo_spec.load().intervals.scrape_seconds)
        assert report.faults == [canary]
        missing = set(report.without_data) - set(EMPTY)
        if not missing:
            break
        time.sleep(10)
    assert missing == set()
    assert report.with_data > 60
    assert [told.partition(": ")[2] for told in report.not_examined if "without our exporter" in told] == [
        "Capacity: no llm_kv_cache_capacity_tokens where engines are scraped without our exporter",
        "Probe duration: no llm_probe_duration_seconds where engines are scraped without our exporter",
    ]
    with Prometheus(prometheus) as client:
        assert [s.labels["job"] for s in client.query("llm_engine_up")] == ["vllm-direct"]


@pytest.mark.parametrize("name", OF_ENGINES)
def test_each_variable_has_a_choice(prometheus: str, name: str) -> None:
    """Job, service, model and instance: a page whose list is empty shows nothing to a person who opens it."""
    (board,) = (board for board in boards() if board["uid"] == f"inferwatch-{name}")
    asked = {
        one["name"]: re.fullmatch(r"label_values\((.+), ?(\w+)\)", one["query"]["query"])
        for one in board["templating"]["list"]
        if one["type"] == "query"
    }
    view = window(time.time() - 300, time.time(), 5)
    with Prometheus(prometheus) as client:
        found = {
            variable: {
                sample.labels.get(match[2])
                for sample in client.query(fill_in(match[1], chosen(board, {}), view))
            }
            for variable, match in asked.items()
            if match is not None
        }

    assert set(found) == set(asked)
    assert {variable: values for variable, values in found.items() if not values - {None, ""}} == {}


def test_an_engine_that_started_is_marked_and_named(prometheus: str) -> None:
    """The annotation Deploys has its beginning, and "What runs where" says what a page can: not the version."""
    page = next(board for board in boards() if board["uid"] == "inferwatch-engine")
    (deploys,) = (one["expr"] for one in page["annotations"]["list"] if one["name"] == "Deploys")
    (shown,) = (panel for panel in page["panels"] if panel["title"] == "What runs where")
    view = window(time.time() - 600, time.time(), 5)
    values = chosen(page, {})
    with Prometheus(prometheus) as client:
        marks = client.query_range(
            fill_in(deploys, values, view), start=view.start, end=view.end, step_seconds=view.step_seconds
        )
        rows = client.query(fill_in(shown["targets"][0]["expr"], values, view))

    assert [mark.labels["version"] for mark in marks] == ["unknown"]
    assert [(row.labels["model"], row.labels["engine"], row.labels["version"]) for row in rows] == [
        (SIM_MODEL, "vllm", "unknown")
    ]
