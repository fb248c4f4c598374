"""What our agent recorded on an NVIDIA H200: three loads, and a real vLLM from idle to overload."""

import gzip
import json
import re
import shutil
import tarfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import slo.spec
from exporters.node.ask import Faults
from exporters.node.config import NodeConfig, NodeFile
from exporters.node.gpus import Fleet
from exporters.node.host_side import HostSide
from exporters.node.recorded import RecordedNvml

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "node"
UUID = "GPU-00000000-0000-0000-0000-000000000001"
_LINE = re.compile(r"^(\w+)\{(.*)\} (\S+)$")


def _values(text: str, family: str, *labels: str) -> list[float]:
    """Values of a family's lines that hold all these label texts, in order."""
    found = [m for line in text.splitlines() if (m := _LINE.match(line)) and m[1] == family]
    return [float(m[3]) for m in found if all(label in m[2] for label in labels)]


def test_bound_was_right_under_all_three_loads() -> None:
    """Every scrape that the agent served in a phase names that phase, though utilisation is 100 % in two."""
    text = gzip.decompress((FIXTURES / "h200-phases.prom.gz").read_bytes()).decode()
    seen = defaultdict(list)
    for part in text.split("# PHASE ")[1:]:
        phase = part.split()[0]
        kinds = [
            kind
            for kind in ("compute", "memory", "idle", "other")
            if _values(part, "llm_gpu_bound", f'kind="{kind}"') == [1.0]
        ]
        (utilisation,) = _values(part, "llm_gpu_utilisation_ratio", 'stat="mean"')
        seen[phase].append((kinds, round(utilisation, 1)))

    assert dict(seen) == {
        "idle": [(["idle"], 0.0)] * 3,
        "compute": [(["compute"], 1.0)] * 3,
        "memory": [(["memory"], 1.0)] * 3,
        "idle_again": [(["idle"], 0.0)] * 3,
    }


@pytest.mark.parametrize("name", ["idle", "compute", "memory"])
def test_what_nvml_answered_then_gives_the_same_verdict_now(drive: Any, name: str) -> None:
    """The recorded NVML answers through today's collectors."""
    document = json.loads((FIXTURES / "h200-phases.json").read_text())
    frame = next(f for f in document["frames"] if f["phase"] == name)
    shown = drive({"driver": document["driver"], **frame})
    shown.run(seconds=3)
    scrape = shown.scrape()

    assert [have["kind"] for have, value in scrape.all("llm_gpu_bound") if value == 1] == [name]
    assert scrape.one("llm_gpu_memory_total_bytes") == 150754820096
    assert scrape.all("llm_node_dropped_readings_total") == []
    assert scrape.all("llm_gpu_read_errors_total") == []


def test_a_real_vllm_is_seen_by_pid(tmp_path: Path) -> None:
    """Two looks at /proc in the burst, 10.224 s apart: the core ran 9.934 s of them and waited 0.43 ms.

    schedstat of pid 836: 153 430 585 423 then 163 364 807 260 ns on a CPU, 10 901 213 then 11 331 143 waiting.
    """
    with tarfile.open(FIXTURES / "proc-vllm-h200.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    looks = sorted(tmp_path.iterdir())
    proc = tmp_path / "proc"
    document = json.loads((FIXTURES / "h200-phases.json").read_text())
    fleet = Fleet(RecordedNvml(document), Faults())
    fleet.open()
    host = HostSide(NodeConfig("h200", proc, tmp_path / "sys", NodeFile()), fleet, lambda: {UUID: [836]})
    for look in looks:
        shutil.rmtree(proc, ignore_errors=True)
        shutil.copytree(look, proc)
        at = float(look.name.split("_")[1])
        host.process_round(at)
        host.thread_round(at)
    found = {(s.family, s.labels): s.value for s in host.samples()}

    core = 'instance="http://127.0.0.1:8000",dp_rank="0",node="h200"'
    assert (
        found[
            "llm_engine_gpu_info", f'instance="http://127.0.0.1:8000",dp_rank="0",uuid="{UUID}",node="h200"'
        ]
        == 1
    )
    assert found["llm_engine_core_seen", f'{core},model="tiny-llama",pid="836"'] == 1
    assert found["llm_engine_core_wall_seconds_total", core] == pytest.approx(10.224)
    assert found["llm_engine_core_busy_seconds_total", core] == pytest.approx(9.934221837)
    assert found["llm_engine_core_runqueue_seconds_total", core] == pytest.approx(0.00042993)
    assert found["llm_engine_core_migrations_total", core] == 0
    assert found["llm_engine_core_bound_cpus", core] == 0
    assert found["llm_engine_core_context_switches_total", f'{core},kind="involuntary"'] == 361
    assert host.owner(836).engine_instance == "http://127.0.0.1:8000"
    assert host.owner(1).engine_instance == ""


def test_the_burst_is_a_starved_gpu_that_looks_a_third_busy() -> None:
    """The recorded vLLM with 140 requests waiting: nvidia-smi's utilisation 30 %, SMs 19 %, core 97 % busy."""
    text = gzip.decompress((FIXTURES / "h200-vllm.prom.gz").read_bytes()).decode()
    parts = text.split("# SCRAPE ")[1:]
    engine = [part for part in parts if part.startswith("engine")]
    node = [part for part in parts if part.startswith("node")]

    assert len(engine) == len(node) == 55
    assert _values(engine[40], "llm_requests_waiting") == [140]
    assert round(_values(node[40], "llm_gpu_utilisation_ratio", 'stat="mean"')[0], 2) == 0.30
    assert round(_values(node[40], "llm_gpu_sm_active_ratio", 'stat="mean"')[0], 2) == 0.19
    busy = [_values(node[n], "llm_engine_core_busy_seconds_total")[0] for n in (39, 40)]
    wall = [_values(node[n], "llm_engine_core_wall_seconds_total")[0] for n in (39, 40)]
    assert round((busy[1] - busy[0]) / (wall[1] - wall[0]), 2) == 0.97
    assert _values(node[40], "llm_gpu_bound", 'kind="other"') == [1]
    assert _values(node[40], "llm_gpu_process_memory_bytes", 'pid="836"', 'model="tiny-llama"') != []
    assert _values(node[40], "llm_cgroup_memory_limit_bytes", 'tenant="acme-vllm"', 'limit="max"') == [
        64 * 2**30
    ]


def test_the_benchmark_on_the_h200_held_its_promises() -> None:
    """Recorded with record_phases.py: at 8 GPUs under 1 % of a core, scrapes under 10 ms, also with a slow NVML."""
    measured = json.loads((FIXTURES / "h200-bench.json").read_text())

    assert (measured["nvml"], measured["gpus"]) == ("nvml", 8)
    assert measured["sampler_core_percent"] <= 1
    assert measured["scrape_ms_max"] < 10
    assert measured["scrape_ms_max_slow_nvml"] < 10
    assert slo.spec.load().node.sampling.sampler_seconds == pytest.approx(
        1 / measured["sampler_ticks_per_second"], rel=0.01
    )


def test_a_recording_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    """Within half a second of the agent's clock; what cannot be read changes nothing."""
    path, now = tmp_path / "nvml.json", [0.0]
    path.write_text('{"devices": [{}]}')
    recording = RecordedNvml.load(path, lambda: now[0])
    assert recording.call("nvmlDeviceGetCount") == 1

    (tmp_path / "new").write_text('{"devices": [{}, {}]}')
    (tmp_path / "new").replace(path)
    assert recording.call("nvmlDeviceGetCount") == 1
    now[0] = 0.5
    assert recording.call("nvmlDeviceGetCount") == 2

    (tmp_path / "new").write_text("{")
    (tmp_path / "new").replace(path)
    now[0] = 1.0
    assert recording.call("nvmlDeviceGetCount") == 2
