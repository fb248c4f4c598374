"""cgroup v2 files to samples, and the other kinds of machine as states."""

from pathlib import Path

import pytest

from exporters.node import cgroups
from exporters.node.config import TenantEntry

CONTAINER = "8f6e0f2d9a7b4c1e8f6e0f2d9a7b4c1e8f6e0f2d9a7b4c1e8f6e0f2d9a7b4c1e"


def fill(folder: Path) -> None:
    """A container's files as Linux writes them."""
    folder.mkdir(parents=True)
    for name, text in {
        "memory.current": "1073741824\n",
        "memory.max": "2147483648\n",
        "memory.high": "max\n",
        "memory.events": "low 0\nhigh 12\nmax 3\noom 1\noom_kill 1\noom_group_kill 0\n",
        "cpu.max": "150000 100000\n",
        "cpu.stat": "usage_usec 5000000\nuser_usec 4000000\nsystem_usec 1000000\n"
        "nr_periods 200\nnr_throttled 50\nthrottled_usec 2500000\n",
        "cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    }.items():
        (folder / name).write_text(text)


def test_everything_of_a_container(tmp_path: Path) -> None:
    """Microseconds become seconds, a quota cores; `max` is no limit and has no series."""
    path = f"/system.slice/docker-{CONTAINER}.scope"
    fill(tmp_path / path.strip("/"))

    found = {
        (s.family, s.labels.partition('node="n"')[2].strip(",")): s.value
        for s in cgroups.samples(tmp_path, path, cgroups.tenant_of(path), "n")
    }

    assert found == {
        ("llm_cgroup_memory_bytes", ""): 1073741824,
        ("llm_cgroup_memory_limit_bytes", 'limit="max"'): 2147483648,
        ("llm_cgroup_memory_events_total", 'event="low"'): 0,
        ("llm_cgroup_memory_events_total", 'event="high"'): 12,
        ("llm_cgroup_memory_events_total", 'event="max"'): 3,
        ("llm_cgroup_memory_events_total", 'event="oom"'): 1,
        ("llm_cgroup_memory_events_total", 'event="oom_kill"'): 1,
        ("llm_cgroup_cpu_seconds_total", 'mode="total"'): 5,
        ("llm_cgroup_cpu_seconds_total", 'mode="user"'): 4,
        ("llm_cgroup_cpu_seconds_total", 'mode="system"'): 1,
        ("llm_cgroup_cpu_periods_total", ""): 200,
        ("llm_cgroup_cpu_throttled_periods_total", ""): 50,
        ("llm_cgroup_cpu_throttled_seconds_total", ""): 2.5,
        ("llm_cgroup_cpu_limit_cores", ""): 1.5,
        ("llm_cgroup_pressure_seconds_total", 'resource="cpu",share="some"'): 1.5,
        ("llm_cgroup_pressure_seconds_total", 'resource="cpu",share="full"'): 0,
    }


@pytest.mark.parametrize(
    ("path", "tenant"),
    [
        (f"/system.slice/docker-{CONTAINER}.scope", CONTAINER[:12]),
        (f"/kubepods.slice/pod1/cri-containerd-{CONTAINER}.scope", CONTAINER[:12]),
        (f"/docker/{CONTAINER}", CONTAINER[:12]),
        ("/tenants/acme", "acme"),
        ("/", "/"),
    ],
)
def test_tenants_have_short_names(path: str, tenant: str) -> None:
    """A container's first 12 digits, as `docker ps` shows them."""
    assert cgroups.tenant_of(path) == tenant


@pytest.mark.parametrize(
    ("files", "state", "mount"),
    [
        (["cgroup.controllers"], "v2", ""),
        (["unified/cgroup.controllers", "memory/tasks"], "hybrid", "unified"),
        (["memory/tasks"], "v1", None),
        ([], "absent", None),
    ],
)
def test_the_kind_of_machine_is_a_state(
    tmp_path: Path, files: list[str], state: str, mount: str | None
) -> None:
    """A machine with v1 only is told so and read no further."""
    for name in files:
        path = tmp_path / "fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")

    found, where = cgroups.root(tmp_path)

    assert found == state
    assert where == (None if mount is None else tmp_path / "fs/cgroup" / mount)
    assert sum(sample.value for sample in cgroups.state_samples(found)) == 1


def test_tenants_are_found_by_pattern(tmp_path: Path) -> None:
    """Configured cgroups beside the engines' own; their name wins."""
    for name in ("tenants/a", "tenants/b"):
        (tmp_path / name).mkdir(parents=True)

    found = cgroups.watched(
        tmp_path, ["/tenants/a", "/x/vllm.service"], [TenantEntry(tenant="acme", cgroup="tenants/*")]
    )

    assert found == {"/tenants/a": "acme", "/tenants/b": "acme", "/x/vllm.service": "vllm.service"}


def test_a_cgroup_that_went_away_has_no_series(tmp_path: Path) -> None:
    """A container that ended between two looks."""
    assert list(cgroups.samples(tmp_path, "/gone", "gone", "n")) == []


def test_the_root_can_be_watched(tmp_path: Path) -> None:
    """The pattern "/" is the whole machine, no pattern that glob() refuses."""
    (tmp_path / "system.slice").mkdir()

    assert cgroups.watched(tmp_path, [], [TenantEntry(tenant="all", cgroup="/")]) == {"/": "all"}
