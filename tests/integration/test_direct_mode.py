"""vLLM of every version scraped by a real Prometheus without our exporter: the same series as with it."""

import gzip
import json
import math
import re
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from exporters.engine.exposition import parse_labels, split_sample
from exporters.engine.labels import LabelCache
from exporters.engine.render import EngineVersion, render_reading
from exporters.engine.translate import translate
from exporters.engine.vllm import ADAPTER
from inferwatch.stack import binaries
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import default_settings

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "engine"
PAGES = {
    path.name.removesuffix(".txt.gz"): path
    for folder in ("families", "captures")
    for path in sorted((FIXTURES / folder).glob("*.txt.gz"))
    if re.match(r"vllm-|ray-", path.name)
}
# What only an exporter can know (docs/alerts.md, "Without our exporter").
LEFT_OUT = re.compile(r"llm_(kv_cache_capacity|lora_|probe_)")
# Blocks or tokens under gpu_prefix_cache_*, and a page does not say its version; the old engine counts neither.
NO_PREFIX_TOKENS = re.compile(r"vllm-0\.(6\.6|8\.5|9\.0|10\.2-v0)")
pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@dataclass(frozen=True)
class Recorded:
    """What Prometheus recorded of every page: page -> series without target labels -> value."""

    pages: dict[str, Series]
    up: dict[str, float]


class Handler(BaseHTTPRequestHandler):
    """Answers with the page that the path names."""

    def do_GET(self) -> None:
        name = self.path.strip("/")
        body = gzip.decompress(PAGES[name].read_bytes())
        openmetrics = body.rstrip().endswith(b"# EOF")
        kind = "application/openmetrics-text; version=1.0.0" if openmetrics else "text/plain; version=0.0.4"
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def query(url: str, expression: str) -> list[dict[str, Any]]:
    """Result of an instant query."""
    words = urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(f"{url}/api/v1/query?{words}", timeout=60) as answer:
        result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return result


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """A Prometheus that scraped all pages and evaluated the direct rules on them."""
    folder = tmp_path_factory.mktemp("prometheus")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = {
        "global": {"scrape_interval": "5s", "evaluation_interval": "5s"},
        "rule_files": [str(ROOT / "alerts/rules/direct-vllm.yaml")],
        "scrape_configs": [
            {
                "job_name": "vllm-direct",
                "static_configs": [
                    {
                        "targets": [f"127.0.0.1:{server.server_port}"],
                        "labels": {"instance": name, "service": "llm", "__metrics_path__": f"/{name}"},
                    }
                    for name in PAGES
                ],
            }
        ],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
    port = free_port()
    find = binaries.resolve("prometheus", default_settings(), Reporter(Console(stderr=True)))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(find.path),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield _read(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(timeout=30)
        server.shutdown()
        server.server_close()


def _count(url: str) -> float:
    """Series recorded so far; 0 while not every page is among them or Prometheus does not answer yet."""
    try:
        pages = query(url, 'count(count by (instance) (llm_generation_tokens_total{job="vllm-direct"}))')
        series = query(url, 'count({__name__=~"llm_.+",job="vllm-direct"})')
    except OSError:
        return 0
    return float(series[0]["value"][1]) if pages and float(pages[0]["value"][1]) == len(PAGES) else 0


def _read(url: str) -> Recorded:
    """Wait until two evaluations in a row record the same series, then read them."""
    until, before, now = time.monotonic() + 150, -1.0, 0.0
    while now == 0 or now != before:
        assert time.monotonic() < until, "Prometheus did not record every page in time"
        time.sleep(6)
        before, now = now, _count(url)
    pages: dict[str, Series] = {name: {} for name in PAGES}
    for sample in query(url, '{__name__=~"llm_.+",job="vllm-direct"}'):
        labels = dict(sample["metric"])
        name, page = labels.pop("__name__"), labels.pop("instance")
        del labels["job"], labels["service"]
        pages[page][name, tuple(sorted(labels.items()))] = float(sample["value"][1])
    up = {sample["metric"]["instance"]: float(sample["value"][1]) for sample in query(url, "up")}
    return Recorded(pages, up)


def _le(value: str) -> str:
    return value if value == "+Inf" else repr(float(value))


def by_exporter(name: str) -> Series:
    """The same page through our exporter."""
    body = gzip.decompress(PAGES[name].read_bytes())
    version = re.match(r"vllm-(\d+\.\d+\.\d+)", name)
    reading = translate(body, ADAPTER, LabelCache(), version[1] if version else "", 50_000)
    series: Series = {}
    for line in render_reading(reading, EngineVersion("")).splitlines():
        if not line or line.startswith(b"#"):
            continue
        metric, text, value = split_sample(line)
        labels = {k.decode(): v.decode() for k, v in parse_labels(text).items()}
        if "le" in labels:
            labels["le"] = _le(labels["le"])
        series[metric.decode(), tuple(sorted(labels.items()))] = float(value)
    return series


# Labels that only an exporter can give: what answers on the engine's port says neither.
NOT_OF_A_PAGE = {"llm_http_requests_total": {"model"}, "llm_engine_info": {"version", "simulated"}}


def compared(page: str, series: Series) -> Series:
    """What both ways should give of a page: names and labels that only an exporter can know are left out."""
    found: Series = {}
    for (name, labels), value in series.items():
        of_blocks = name.startswith("llm_prefix_cache_") and NO_PREFIX_TOKENS.match(page)
        if LEFT_OUT.match(name) or of_blocks:
            continue
        unknown = NOT_OF_A_PAGE.get(name, set())
        found[name, tuple(pair for pair in labels if pair[0] not in unknown)] = value
    return found


@pytest.mark.parametrize("name", PAGES)
def test_both_ways_give_the_same_series(recorded: Recorded, name: str) -> None:
    """Names, labels and values, from vLLM 0.6 to 0.33, behind Ray, in OpenMetrics spelling."""
    direct, ours = compared(name, recorded.pages[name]), compared(name, by_exporter(name))

    assert recorded.up[name] == 1
    assert sorted(ours.keys() - direct.keys()) == []
    assert sorted(direct.keys() - ours.keys()) == []
    assert [k for k in ours if not math.isclose(ours[k], direct[k], rel_tol=1e-9, abs_tol=1e-12)] == []


@pytest.mark.parametrize("name", PAGES)
def test_each_page_is_read_and_what_it_cannot_say_is_not_claimed(recorded: Recorded, name: str) -> None:
    """One without gauges (several processes, before the first request) too. The version is unknown, whether it is a simulation stays open, and blocks are never taken for tokens."""
    series = recorded.pages[name]
    failures = [
        labels for (metric, labels), value in series.items() if metric == "llm_probe_failure" and value
    ]
    info = [dict(labels) for metric, labels in series if metric == "llm_engine_info"]
    prefix = [metric for metric, _ in series if metric.startswith("llm_prefix_cache_")]

    assert series["llm_probe_success", ()] == 1 and failures == []
    assert info and {found["version"] for found in info} == {"unknown"}
    assert all(found["engine"] == "vllm" and "simulated" not in found for found in info)
    assert bool(prefix) is not bool(NO_PREFIX_TOKENS.match(name))


@pytest.mark.parametrize("name", [n for n in PAGES if (FIXTURES / "families" / f"{n}.json").is_file()])
def test_totals_are_those_stated_for_the_page(recorded: Recorded, name: str) -> None:
    """Against the values that each page's own generator states, not against our exporter."""
    expected = json.loads((FIXTURES / "families" / f"{name}.json").read_text(encoding="utf-8"))
    series = recorded.pages[name]

    def total(metric: str) -> float:
        return sum(value for (found, _), value in series.items() if found == metric)

    for key, metric in (
        ("ttft", "llm_time_to_first_token_seconds"),
        ("itl", "llm_inter_token_latency_seconds"),
        ("request_tpot", "llm_time_per_output_token_seconds"),
        ("e2e", "llm_request_duration_seconds"),
        ("queue", "llm_request_queue_seconds"),
    ):
        stated = expected[key] or {"count": 0, "sum": 0}
        assert total(f"{metric}_count") == pytest.approx(stated["count"]), key
        assert total(f"{metric}_sum") == pytest.approx(stated["sum"]), key
    for key, metric in (
        ("prompt_tokens", "llm_prompt_tokens_total"),
        ("generation_tokens", "llm_generation_tokens_total"),
        ("running", "llm_requests_running"),
        ("waiting", "llm_requests_waiting"),
        ("preemptions", "llm_preemptions_total"),
    ):
        assert total(metric) == pytest.approx(expected[key] or 0), key
    if not NO_PREFIX_TOKENS.match(name):
        tokens = expected["prefix_cache"]
        assert total("llm_prefix_cache_queried_tokens_total") == pytest.approx(tokens["queried_tokens"])
        assert total("llm_prefix_cache_hit_tokens_total") == pytest.approx(tokens["hit_tokens"])
    assert total("llm_requests_total") == pytest.approx(sum(expected["requests_finished"].values()))
