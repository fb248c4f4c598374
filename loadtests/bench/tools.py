"""A load and a URL -> what one load client says it measured. One function a client, in a literal list."""

import contextlib
import json
import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadtests.bench.mock import BenchError, Truth
from loadtests.plan import closed, open_loop, parse_plan
from loadtests.run import run_load

_LIMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class Load:
    """Either *users* in a closed loop or *rate* a second, for *seconds*; *chunks* an answer."""

    chunks: int
    seconds: float
    users: int = 0
    rate: float = 0.0

    @property
    def requests(self) -> int:
        """How many requests a client that counts instead of timing is told to send in an open loop."""
        return max(int(self.rate * self.seconds), 1)


@dataclass
class Said:
    """What a client reported: seconds; `by_id` holds (ttft, gaps) where it can be matched request by request."""

    ttft_s: list[float] = field(default_factory=list)
    gaps_s: list[float] = field(default_factory=list)
    delays_s: list[float] | None = None
    by_id: dict[str, tuple[float, list[float]]] = field(default_factory=dict)
    failed: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0


Tool = Callable[[Load, Truth, Path, int], Said]


@contextlib.contextmanager
def on_core(core: int) -> Iterator[None]:
    """What is started inside runs on *core*."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def own(load: Load, server: Truth, folder: Path, core: int) -> Said:
    """This project's client."""
    arrival = closed(load.users, load.seconds) if load.users else open_loop(load.rate, load.seconds)
    raw = {
        "base_url": server.url,
        "ca_file": str(server.certificate) if server.certificate else None,
        "model": "mock",
        "arrival": arrival,
        "output_tokens": load.chunks,
        "prompt_tokens": 16,
    }
    plan = parse_plan({**raw, "mix": {"completions": 1}, "drain_s": 10})
    with on_core(core):
        began = time.monotonic()
        result = run_load(plan, folder)
    busy = sum(
        sample["cpu_ratio"] * sample["seconds"] for sample in result.health
    )  # without Locust's own start
    said = Said(cpu_s=busy, wall_s=time.monotonic() - began, delays_s=[])
    for record in result.records:
        if record.outcome != "ok" or record.ttft_s is None:
            said.failed += 1
            continue
        gaps = [gap / 1e9 for gap in record.chunk_gaps_ns]
        said.ttft_s.append(record.ttft_s)
        said.gaps_s += gaps
        said.by_id[record.trace_id] = (record.ttft_s, gaps)
        if said.delays_s is not None and load.rate:
            said.delays_s.append(record.schedule_delay_s)
    return said


def vllm_bench(load: Load, server: Truth, folder: Path, core: int) -> Said:
    """`vllm bench serve` from the environment in INFERWATCH_BENCH_VLLM."""
    python, tokenizer = _environment("VLLM"), _tokenizer()
    count = load.requests if load.rate else load.users * max(int(load.seconds * 8), 1)
    command = [
        python,
        "-m",
        "vllm.entrypoints.cli.main",
        "bench",
        "serve",
        "--backend",
        "openai",
        "--base-url",
        server.url,
    ]
    command += [
        "--endpoint",
        "/v1/completions",
        "--model",
        "mock",
        "--tokenizer",
        tokenizer,
        "--dataset-name",
        "random",
    ]
    command += [
        "--random-input-len",
        "16",
        "--random-output-len",
        str(load.chunks),
        "--num-prompts",
        str(count),
    ]
    command += ["--request-rate", f"{load.rate:g}"] if load.rate else ["--max-concurrency", str(load.users)]
    command += [
        "--save-result",
        "--save-detailed",
        "--result-dir",
        str(folder),
        "--result-filename",
        "r.json",
    ]
    said = _run(command, server, folder, core)
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    for ttft, gaps, error in zip(found["ttfts"], found["itls"], found["errors"], strict=True):
        _take(said, ttft, gaps, failed=bool(error))
    return said


def aiperf(load: Load, server: Truth, folder: Path, core: int) -> Said:
    """aiperf from the environment in INFERWATCH_BENCH_AIPERF."""
    python, tokenizer = _environment("AIPERF"), _tokenizer()
    command = [
        str(Path(python).with_name("aiperf")),
        "profile",
        "--model",
        "mock",
        "--url",
        server.url,
        "--streaming",
    ]
    command += [
        "--endpoint-type",
        "completions",
        "--tokenizer",
        tokenizer,
        "--artifact-dir",
        str(folder / "a"),
    ]
    command += ["--synthetic-input-tokens-mean", "16", "--output-tokens-mean", str(load.chunks)]
    if load.rate:
        command += ["--request-rate", f"{load.rate:g}", "--request-count", str(load.requests)]
    else:
        command += [
            "--concurrency",
            str(load.users),
            "--request-count",
            str(load.users * max(int(load.seconds * 4), 1)),
        ]
    said = _run(command, server, folder, core)
    export = next((folder / "a").rglob("profile_export.jsonl"), None)
    if export is None:
        raise BenchError(f"aiperf left no profile_export.jsonl; see {folder / 'log'}")
    for (
        line
    ) in export.read_bytes().splitlines():  # of bytes: text would be split at U+2028 inside a value too
        found = json.loads(line)
        metrics: dict[str, Any] = found["metrics"]
        gaps = metrics.get("inter_chunk_latency", {}).get("value") or []
        ttft = metrics.get("time_to_first_token", {}).get("value")
        _take(said, (ttft or 0) / 1e3, [gap / 1e3 for gap in gaps], failed=found.get("error") is not None)
    return said


def guidellm(load: Load, server: Truth, folder: Path, core: int) -> Said:
    """guidellm from the environment in INFERWATCH_BENCH_GUIDELLM; it keeps no gaps."""
    python, tokenizer = _environment("GUIDELLM"), _tokenizer()
    profile = f"kind=poisson,rate={load.rate:g}" if load.rate else f"kind=concurrent,streams={load.users}"
    command = [str(Path(python).with_name("guidellm")), "run", "--profile", profile, "--disable-console"]
    command += [
        "--backend",
        f"kind=openai_http,target={server.url},model=mock,request_format=/v1/completions",
    ]
    command += ["--constraint", f"kind=max_duration,seconds={load.seconds:g}"]
    command += ["--tokenizer", f"kind=huggingface_auto,model={tokenizer}"]
    command += ["--data", f"kind=synthetic_text,prompt_tokens=16,output_tokens={load.chunks}"]
    command += ["--output", f"kind=json,path={folder / 'r.json'}"]
    said = _run(command, server, folder, core)
    found = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    requests = found["benchmarks"][0]["requests"]
    said.delays_s = []
    for one in requests["successful"]:
        ttft_s = one["time_to_first_token_ms"] / 1e3
        _take(said, ttft_s, [], failed=False)
        said.by_id[one["response_id"].removeprefix("cmpl-")] = (ttft_s, [])
        if load.rate:
            said.delays_s.append(one["request_dispatch_delay"])
    said.failed += len(requests["errored"])
    return said


TOOLS: dict[str, Tool] = {"inferwatch": own, "vllm": vllm_bench, "aiperf": aiperf, "guidellm": guidellm}


def installed() -> list[str]:
    """Clients that can be run here: ours, and those whose environment is named."""
    return ["inferwatch", *(name for name in TOOLS if os.environ.get(f"INFERWATCH_BENCH_{name.upper()}"))]


def _take(said: Said, ttft_s: float, gaps_s: list[float], *, failed: bool) -> None:
    if failed:
        said.failed += 1
        return
    said.ttft_s.append(ttft_s)
    said.gaps_s += gaps_s


def _environment(name: str) -> str:
    python = os.environ.get(f"INFERWATCH_BENCH_{name}", "")
    if not Path(python).is_file():
        raise BenchError(f"INFERWATCH_BENCH_{name}={python!r}: name the Python of an environment that has it")
    return python


def _tokenizer() -> str:
    folder = os.environ.get("INFERWATCH_BENCH_TOKENIZER", "")
    if not (Path(folder) / "tokenizer.json").is_file():
        raise BenchError(f"INFERWATCH_BENCH_TOKENIZER={folder!r}: name a folder with a tokenizer.json")
    return folder


def _run(command: list[str], server: Truth, folder: Path, core: int) -> Said:
    """Run a peer; that it trusts the server's certificate is told as OpenSSL and httpx are told it."""
    env = {**os.environ, "SSL_CERT_FILE": str(server.certificate)} if server.certificate else None
    folder.mkdir(parents=True, exist_ok=True)
    began, cpu = time.monotonic(), _children_cpu()
    with on_core(core), (folder / "log").open("wb") as log:
        try:
            done = subprocess.run(
                command, stdout=log, stderr=subprocess.STDOUT, timeout=_LIMIT_S, check=False, env=env
            )
        except subprocess.TimeoutExpired:
            raise BenchError(f"{command[0]} took more than {_LIMIT_S:g} s; see {folder / 'log'}") from None
    if done.returncode != 0:
        raise BenchError(f"{command[0]} ended with code {done.returncode}; see {folder / 'log'}")
    return Said(cpu_s=_children_cpu() - cpu, wall_s=time.monotonic() - began)


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
