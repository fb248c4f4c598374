"""Compose files that failed other people on a clean Linux host are flagged; those that work are not."""

import json
import shutil
from pathlib import Path

import pytest

from inferwatch.compose import images, model, volumes, wiring

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "fixtures" / "compose"
KNOWN = images.known(ROOT / "deploy" / "Dockerfile")


def test_a_bound_data_folder_is_flagged_and_a_named_volume_is_not(tmp_path: Path) -> None:
    """A66: the engine makes ./data/prometheus as root, and Prometheus, nobody, cannot write it."""
    case = CASES / "A66-data-dir-not-writable"
    expected = json.loads((case / "expected.json").read_text())["flag"]
    for file in case.glob("*.yml"):
        shutil.copy(file, tmp_path)
    (tmp_path / "prometheus.yml").write_text("")
    flagged = {
        name: volumes.faults(model.load(tmp_path / name, {}), KNOWN)
        for name in ("compose.yml", "compose_ok.yml")
    }

    assert [
        name for name, faults in flagged.items() if any("use a named volume" in f for f in faults)
    ] == expected
    assert flagged["compose_ok.yml"] == []


def test_the_hosts_name_is_flagged_in_both_of_its_uses() -> None:
    """A76: a target on the host needs extra_hosts, and a sibling is addressed by its service name."""
    case = CASES / "A76-host-docker-internal-on-linux"
    expected = json.loads((case / "expected.json").read_text())["flag"]
    texts = {
        "prometheus.yml": ("prometheus", (case / "prometheus.yml").read_text()),
        "datasource.yml": ("grafana", (case / "datasource.yml").read_text()),
    }
    faults = wiring.host_faults(model.load(case / "compose.yml", {}), texts)

    assert [fault.partition(":")[0] for fault in faults] == [flag.partition(":")[0] for flag in expected]
    assert "prometheus needs extra_hosts: host.docker.internal:host-gateway" in faults[0]
    assert "write prometheus:9090" in faults[1]


def test_a_config_that_nobody_else_can_read_is_flagged(tmp_path: Path) -> None:
    """Mode 600 on the host is unreadable for the container's user."""
    (tmp_path / "compose.yml").write_text(
        "services: {prometheus: {image: 'prom/prometheus:v3', volumes: ['./p.yml:/etc/p.yml:ro']}}\n"
    )
    (tmp_path / "p.yml").write_text("")
    (tmp_path / "p.yml").chmod(0o600)

    (fault,) = volumes.faults(model.load(tmp_path / "compose.yml", {}), KNOWN)
    assert "p.yml cannot be read by the container's user" in fault


@pytest.mark.parametrize(
    ("user", "fault"),
    [("65534", None), ("1000", "runs as 1000, but volume data belongs to 65534")],
)
def test_the_volumes_owner_is_the_user_that_writes(tmp_path: Path, user: str, fault: str | None) -> None:
    """An empty named volume takes the owner of the image's folder; another user cannot write it."""
    (tmp_path / "compose.yml").write_text(
        f"services: {{prometheus: {{image: 'prom/prometheus:v3', user: '{user}', volumes: ['data:/prometheus']}}}}\n"
        "volumes: {data: {}}\n"
    )
    found = volumes.faults(model.load(tmp_path / "compose.yml", {}), KNOWN)

    assert (fault is None and found == []) or (fault is not None and fault in found[0])
