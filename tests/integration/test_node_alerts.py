"""GPU faults from NVML's answer to a firing alert: the real agent on a recording, a real Prometheus, the shipped rules."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from inferwatch.stack import binaries
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import default_settings

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "fixtures" / "node" / "nvml-h200.json"
pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
WELL_SECONDS = 20
# GPU-1 falls off the bus (XID 79); GPU-0 has an uncorrectable error, a row to be remapped, and XID 31.
EXPECTED = {
    ("GpuLost", ""),
    ("GpuXidHardware", "GPU-1"),
    ("GpuXidApplication", "GPU-0"),
    ("GpuEccUncorrected", "GPU-0"),
    ("GpuRowRemapPending", "GPU-0"),
}


def two_gpus_that_fail() -> dict[str, Any]:
    """The recorded idle H200 twice, well at first and then broken in two ways."""
    document = json.loads(RECORDED.read_text(encoding="utf-8"))
    idle = next(frame for frame in document["frames"] if frame["phase"] == "idle")
    devices = [json.loads(json.dumps(idle["devices"][0])) for _ in range(2)]
    for index, device in enumerate(devices):
        device["calls"]["nvmlDeviceGetUUID"] = {"return": f"GPU-{index}"}
    broken = json.loads(json.dumps(devices))
    broken[0]["calls"]["nvmlDeviceGetTotalEccErrors:1:0"] = {"return": 1}
    broken[0]["calls"]["nvmlDeviceGetRemappedRows"] = {"return": [0, 1, 1, 0]}
    broken[0]["xids"] = [[WELL_SECONDS + 1, 31]]
    broken[1]["handle"] = {"raise": "NVML_ERROR_GPU_IS_LOST"}
    lost = {name: {"raise": "NVML_ERROR_GPU_IS_LOST"} for name in broken[1]["calls"]}
    broken[1]["calls"] = lost | {"nvmlDeviceGetUUID": {"return": "GPU-1"}}
    broken[1]["xids"] = [[WELL_SECONDS + 1, 79]]
    return {
        "driver": document["driver"],
        "frames": [{"seconds": WELL_SECONDS, "devices": devices}, {"seconds": 3600, "devices": broken}],
    }


def free_port() -> int:
    """A port that nobody holds now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(folder: Path, *argv: str) -> Iterator[None]:
    """A process for as long as the test needs it."""
    with (folder / f"{Path(argv[0]).name}.log").open("w") as log:
        process = subprocess.Popen(argv, cwd=ROOT, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(15)


def firing(port: int) -> set[tuple[str, str]]:
    """(alert, uuid) of what Prometheus has firing; nothing while it does not answer yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/alerts", timeout=5) as answer:
            alerts = json.load(answer)["data"]["alerts"]
    except OSError:
        return set()
    return {(a["labels"]["alertname"], a["labels"].get("uuid", "")) for a in alerts if a["state"] == "firing"}


def test_gpu_faults_are_seen_from_nvml_to_the_alert(tmp_path: Path) -> None:
    """Nothing fires while both are well; then exactly the five that two broken GPUs deserve."""
    agent, prometheus = free_port(), free_port()
    (tmp_path / "nvml.json").write_text(json.dumps(two_gpus_that_fail()), encoding="utf-8")
    config = {
        "global": {"scrape_interval": "5s", "evaluation_interval": "5s"},
        "rule_files": [str(ROOT / "alerts" / "rules" / "node.yaml")],
        "scrape_configs": [
            {
                "job_name": "node",
                "honor_labels": True,
                "static_configs": [{"targets": [f"127.0.0.1:{agent}"]}],
            }
        ],
    }
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    binary = binaries.resolve("prometheus", default_settings(), Reporter(Console(stderr=True))).path
    node = (sys.executable, "-m", "exporters", "node", "--listen", f"127.0.0.1:{agent}")
    server = (
        *(
            str(binary),
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
        ),
        f"--web.listen-address=127.0.0.1:{prometheus}",
    )
    # The recorded clock begins when the agent opens NVML, after Prometheus is up.
    with (
        running(tmp_path, *server),
        running(tmp_path, *node, "--nvml-recording", str(tmp_path / "nvml.json")),
    ):
        began = time.monotonic()
        early: set[tuple[str, str]] = set()
        found: set[tuple[str, str]] = set()
        while time.monotonic() - began < 180 and not found >= EXPECTED:
            time.sleep(1)
            found = firing(prometheus)
            if time.monotonic() - began < WELL_SECONDS - 2:
                early |= found

    # The agent looks at this machine's processes too: what they deserve is not asked here.
    assert {alert for alert in early if alert[0].startswith("Gpu")} == set()
    assert {alert for alert in found if alert[0].startswith("Gpu")} == EXPECTED
