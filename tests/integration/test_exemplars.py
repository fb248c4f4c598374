"""Heatmap cell -> exemplar -> trace: real collector, Prometheus and Jaeger as the launcher starts them."""

import json
import time
import urllib.error
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlencode

import pytest

from inferwatch.stack import config, services, traces
from inferwatch.stack.settings import PORT_OFFSETS, Settings, default_settings
from slo import spec as slo_spec

from . import otlp

pytestmark = pytest.mark.integration
BUCKETS = "traces_span_metrics_duration_seconds_bucket"


def own_settings(folder: Path) -> Settings:
    """A stack of the test's own, on a range of ports that nothing holds."""
    (base,) = otlp.free_ports(1)
    base = min(base, 65535 - max(PORT_OFFSETS.values()) - 1)
    return default_settings(run_dir=folder, base_port=base, environ={"HOME": str(Path.home())})


def exemplars(url: str) -> dict[str, set[str]]:
    """Trace ids by the bucket bound that they hang on."""
    now = time.time()
    query = urlencode({"query": BUCKETS, "start": now - 300, "end": now + 5})
    found: dict[str, set[str]] = {}
    for series in json.loads(otlp.get(f"{url}/api/v1/query_exemplars?{query}"))["data"]:
        ids = {one["labels"]["trace_id"] for one in series["exemplars"]}
        found.setdefault(series["seriesLabels"]["le"], set()).update(ids)
    return found


def test_an_exemplar_of_a_slow_cell_opens_its_trace(tmp_path: Path) -> None:
    """A retrieval of 0.42 s hangs on the bucket of 0.5 s, and Jaeger has the whole trace under that id."""
    settings, spec = own_settings(tmp_path), slo_spec.load()
    tools = {name: otlp.binary(name) for name in traces.TOOLS}
    traces.write_files(settings)
    made = config.prometheus_config(spec, settings, traced=True)
    made["scrape_configs"] = [
        job for job in made["scrape_configs"] if job["job_name"] == "otel-collector-spans"
    ]
    made["rule_files"] = []
    config.write_yaml(settings.prometheus_config, made)
    prometheus = services.prometheus(spec, settings, otlp.binary("prometheus"), tmp_path)
    root = otlp.span("POST /v1/rag/answer", seconds=0.5)
    slow = otlp.span(
        "rag retrieval",
        seconds=0.42,
        trace=root["traceId"],
        parent=root["spanId"],
        kind=1,
        more={"rag.stage": "retrieval"},
    )
    with ExitStack() as running:
        for service in (*traces.services(settings, tools), prometheus):
            running.enter_context(otlp.running(service, tmp_path))
        assert otlp.post(settings.port("otlp-http"), "traces", otlp.traces([slow, root])) == 200
        otlp.until(
            lambda: root["traceId"] in exemplars(settings.url("prometheus")).get("0.5", set()),
            40,
            "its exemplar",
        )
        url = f"{settings.url('jaeger')}/api/traces/{root['traceId']}"
        otlp.until(
            lambda: spans_at(url) == {"POST /v1/rag/answer", "rag retrieval"}, 40, "its trace in Jaeger"
        )


def spans_at(url: str) -> set[str]:
    """Names of the trace's spans, empty while Jaeger has none."""
    try:
        data = json.loads(otlp.get(url))["data"]
    except urllib.error.HTTPError as error:
        error.close()
        return set()
    return {span["operationName"] for trace in data for span in trace["spans"]}
