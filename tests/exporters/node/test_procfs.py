"""Kernel files to numbers."""

from pathlib import Path

import pytest

from exporters.node import procfs

# A line of /proc/PID/stat as Linux 6.18 writes it; the name holds a space and brackets.
STAT = (
    "19 (VLLM::Eng (x) 0) R 7 19 19 0 -1 4194304 1 0 0 0 350 150 0 0 20 0 12 0 4711 2048 25 "
    "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0"
)


def test_stat_with_brackets_in_the_name() -> None:
    """utime 350 and stime 150 ticks are 5 s at 100 ticks a second."""
    stat = procfs.parse_stat(STAT)

    assert (stat.name, stat.parent, stat.processor, stat.start_ticks) == ("VLLM::Eng (x) 0", 7, 3, 4711)
    assert stat.cpu_seconds == 500 / procfs.TICKS_PER_SECOND
    assert stat.resident_bytes == 25 * procfs.PAGE_BYTES


def test_a_file_that_is_cut_off_is_no_reading(tmp_path: Path) -> None:
    """A process that ended between two reads."""
    (tmp_path / "stat").write_text("19 (python) R 7")

    assert procfs.stat(tmp_path / "stat") is None
    assert procfs.stat(tmp_path / "missing") is None


def test_schedstat_and_migrations() -> None:
    """Nanoseconds on a CPU and in the run queue; a kernel without them gives none."""
    assert procfs.parse_schedstat("2500000000 500000000 42\n") == (2.5, 0.5)
    assert procfs.parse_schedstat("") is None
    assert procfs.parse_migrations("se.vruntime : 1.0\nse.nr_migrations      :        17\n") == 17
    assert procfs.parse_migrations("") is None


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0-2,5\n", {0, 1, 2, 5}), ("3", {3}), ("", set()), ("a-b", set()), ("1-", set())],
)
def test_cpu_lists(text: str, cpus: set[int]) -> None:
    """The kernel's list format."""
    assert procfs.parse_cpu_list(text) == cpus


def test_pressure_cpu_busy_and_memory() -> None:
    """PSI totals in seconds; idle and iowait are not busy."""
    psi = "some avg10=1.49 avg60=2.77 avg300=13.56 total=325421105\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    ticks = procfs.TICKS_PER_SECOND
    stat = f"cpu  {2 * ticks} 0 {ticks} 900 50 0 0 {ticks} 0 0\ncpu1 {ticks} 0 0 9 9 0 0 0 0 0\nintr 5\n"

    assert procfs.parse_pressure(psi) == {"some": 325.421105, "full": 0.0}
    assert procfs.parse_cpu_busy(stat) == {None: 4.0, 1: 1.0}
    assert procfs.parse_meminfo("MemTotal: 10 kB\nMemFree: 1 kB\nMemAvailable: 4 kB\n") == {
        "total": 10240,
        "available": 4096,
    }
    assert procfs.parse_meminfo("MemTotal: 10 kB\n") == {}


def test_cgroup_paths() -> None:
    """The v2 line of a hybrid machine; a v1 machine has none."""
    assert procfs.unified_cgroup("4:memory:/a\n0::/kubepods/pod1\n") == "/kubepods/pod1"
    assert procfs.unified_cgroup("4:memory:/a\n") is None


def test_numa(tmp_path: Path) -> None:
    """NVML's bus id has a domain of 8 digits, sysfs of 4; -1 is unknown."""
    for name, value in (("0000:17:00.0", "1"), ("0000:65:00.0", "-1")):
        (tmp_path / "bus/pci/devices" / name).mkdir(parents=True)
        (tmp_path / "bus/pci/devices" / name / "numa_node").write_text(value + "\n")
    for node, cpus in ((0, "0-1"), (1, "2-3")):
        (tmp_path / f"devices/system/node/node{node}").mkdir(parents=True)
        (tmp_path / f"devices/system/node/node{node}/cpulist").write_text(cpus + "\n")

    assert procfs.numa_of_pci(tmp_path, "00000000:17:00.0") == 1
    assert procfs.numa_of_pci(tmp_path, "00000000:65:00.0") is None
    assert procfs.numa_of_cpus(tmp_path) == {0: 0, 1: 0, 2: 1, 3: 1}
