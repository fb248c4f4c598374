"""What the node agent costs at 8 GPUs: its sampler's CPU, its scrape; beside nvidia-smi run at each scrape.

With a driver the GPUs that are there are asked as often as eight would be; without one a recording
answers, which costs Python but no driver. The slow case holds every NVML call for two seconds.
"""

import asyncio
import os
import resource
import shutil
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

import slo.spec
from exporters.node.agent import Agent
from exporters.node.config import NodeConfig
from exporters.node.nvml import EventSource, GpmSource, LiveNvml, Nvml, NvmlError, text
from exporters.node.recorded import RecordedNvml
from exporters.node.server import node_app

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "tests/fixtures/node/nvml-h200.json"
GPUS = 8
_MEASURE_SECONDS = 30.0  # two rounds of the slow readings at least
_SCRAPES = 40
_SLOW_SECONDS = 2.0
_SMI_ROUNDS = 5
# What nvidia_gpu_exporter asks nvidia-smi for at each scrape, cut to what the agent samples too.
_SMI_QUERY = (
    "uuid,name,pci.bus_id,utilization.gpu,utilization.memory,memory.total,memory.used,memory.free,"
    "memory.reserved,power.draw,power.limit,temperature.gpu,temperature.memory,clocks.sm,clocks.mem,"
    "clocks_event_reasons.active,ecc.errors.uncorrected.volatile.total,pcie.link.gen.current"
)


class Multiplied:
    """An Nvml that shows its GPUs again and again until there are `count`, each with a UUID of its own."""

    def __init__(self, inner: Nvml, count: int) -> None:
        self.source = inner.source
        self._inner, self._count, self._real = inner, count, 1
        self.hold_seconds = 0.0

    def open(self) -> None:
        """Raises NvmlError."""
        self._inner.open()
        self._real = int(self._inner.call("nvmlDeviceGetCount"))

    def close(self) -> None:
        """Detach."""
        self._inner.close()

    def call(self, name: str, *args: Any) -> Any:
        """Raises NvmlError."""
        if self.hold_seconds:
            time.sleep(self.hold_seconds)
        if name == "nvmlDeviceGetCount":
            return self._count
        if name == "nvmlDeviceGetHandleByIndex":
            return (args[0], self._inner.call(name, args[0] % self._real))
        if not args:
            return self._inner.call(name)
        (index, handle), *rest = args
        answer = self._inner.call(name, handle, *rest)
        return f"{text(answer)}-{index}" if name == "nvmlDeviceGetUUID" else answer

    def fields(self, handle: Any, ids: Sequence[int]) -> dict[int, float | NvmlError]:
        """Field values."""
        return self._inner.fields(handle[1], ids)

    def gpm(self, handle: Any, gpu_instance: int | None = None) -> GpmSource:
        """A GPM source each."""
        return self._inner.gpm(handle[1], gpu_instance)

    def events(self, handles: Sequence[Any]) -> tuple[EventSource, int]:
        """One event set for the real GPUs."""
        return self._inner.events([handle for _, handle in handles[: self._real]])


def source() -> Nvml:
    """The driver where there is one with a GPU, else the recording."""
    live = LiveNvml()
    try:
        live.open()
        found = int(live.call("nvmlDeviceGetCount"))
        live.close()
    except NvmlError:
        found = 0
    return live if found else RecordedNvml.load(RECORDING)


def run() -> dict[str, object]:
    """Measure both; keys name their unit. Needs Linux, and nvidia-smi for the peer."""
    return asyncio.run(_agent(source())) | _smi()


async def _agent(nvml: Nvml) -> dict[str, object]:
    many = Multiplied(nvml, GPUS)
    agent = Agent(many, NodeConfig("bench"), slo.spec.load().node)
    runner = web.AppRunner(node_app(agent), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/metrics"
    try:
        await asyncio.sleep(2.0)
        before = {one.name: one.cpu_seconds for one in agent.rounds.all}
        ticks, process = agent.sampler.ticks, time.process_time()
        began = time.monotonic()
        await asyncio.sleep(_MEASURE_SECONDS)
        wall = time.monotonic() - began
        by_round = {one.name: (one.cpu_seconds - before[one.name]) / wall for one in agent.rounds.all}
        whole = (time.process_time() - process) / wall
        ticks = agent.sampler.ticks - ticks
        quick, size, series = await _scrapes(url)
        many.hold_seconds = _SLOW_SECONDS
        await asyncio.sleep(0.3)
        slow, *_ = await _scrapes(url)
        many.hold_seconds = 0.0
    finally:
        await runner.cleanup()
    return {
        "nvml": nvml.source,
        "gpus": GPUS,
        "sampler_core_percent": round(by_round["sampler"] * 100, 3),
        "agent_core_percent": round(whole * 100, 2),
        **{
            f"{name}_core_percent": round(share * 100, 3)
            for name, share in by_round.items()
            if name != "sampler"
        },
        "sampler_ticks_per_second": round(ticks / wall, 2),
        "scrape_ms_median": round(statistics.median(quick) * 1e3, 2),
        "scrape_ms_max": round(max(quick) * 1e3, 2),
        "scrape_ms_median_slow_nvml": round(statistics.median(slow) * 1e3, 2),
        "scrape_ms_max_slow_nvml": round(max(slow) * 1e3, 2),
        "scrape_bytes": size,
        "scrape_series": series,
        "cores": os.cpu_count(),
        "side_by_side": "the agent at 8 GPUs over HTTP on loopback, then with every NVML call held for "
        f"{_SLOW_SECONDS:g} s, then nvidia-smi --query-gpu as nvidia_gpu_exporter runs it, same machine, one run",
    }


async def _scrapes(url: str) -> tuple[list[float], int, int]:
    took: list[float] = []
    body = b""
    async with aiohttp.ClientSession() as session:
        for _ in range(_SCRAPES):
            began = time.perf_counter()
            async with session.get(url) as answer:
                body = await answer.read()
            took.append(time.perf_counter() - began)
            await asyncio.sleep(0.05)
    return took[1:], len(body), sum(1 for line in body.splitlines() if not line.startswith(b"#"))


def _smi() -> dict[str, object]:
    """One `nvidia-smi --query-gpu` a scrape: its wall and CPU time."""
    if shutil.which("nvidia-smi") is None:
        return {"nvidia_smi": "not installed: the peer was not measured"}
    took: list[float] = []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(_SMI_ROUNDS):
        began = time.perf_counter()
        subprocess.run(
            ["nvidia-smi", f"--query-gpu={_SMI_QUERY}", "--format=csv"],
            check=True,
            capture_output=True,
            timeout=60,
        )
        took.append(time.perf_counter() - began)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / _SMI_ROUNDS
    return {
        "nvidia_smi_ms_median": round(statistics.median(took) * 1e3, 1),
        "nvidia_smi_cpu_ms": round(cpu * 1e3, 1),
        "nvidia_smi_gpus": "as many as are there",
    }
