"""Shares of time -> a tree of /proc and cgroup files whose counters move by them, as the node agent reads them."""

from dataclasses import dataclass, field
from pathlib import Path

from inferwatch.scenarios.shown import Core, Tenant

CPUS_A_CORE = 2
FIRST_PID = 1000
TICKS_PER_SECOND = 100
PERIODS_PER_SECOND = 10.0
"""Of the CFS quota: 100 ms each."""
GIBIBYTE = 2**30


def pid_of(number: int) -> int:
    """Process of the engine core with that place in the list."""
    return FIRST_PID + number


@dataclass
class _Core:
    busy: float = 0.0
    waited: float = 0.0
    others: float = 0.0


@dataclass
class _Tenant:
    periods: float = 0.0
    throttled: float = 0.0
    stalled: float = 0.0
    oom_kills: int = 0


@dataclass
class Host:
    """
    The tree under *root* (`proc` and `sys`); engine cores in the order of their rows.

    Attributes:
        arguments: row -> command line of its engine.
    """

    root: Path
    arguments: dict[str, tuple[str, ...]]
    seconds: float = 0.0
    _cores: dict[str, _Core] = field(default_factory=dict)
    _tenants: dict[str, _Tenant] = field(default_factory=dict)

    def advance(self, seconds: float, cores: dict[str, Core], tenants: dict[str, Tenant]) -> None:
        """Let so much time pass with these shares; nothing is written yet."""
        self.seconds += seconds
        for row, core in cores.items():
            sums = self._cores.setdefault(row, _Core())
            sums.busy += seconds * core.busy
            sums.waited += seconds * core.waited
            sums.others += seconds * core.others
        for row, tenant in tenants.items():
            used = self._tenants.setdefault(row, _Tenant())
            used.periods += seconds * PERIODS_PER_SECOND
            used.throttled += seconds * PERIODS_PER_SECOND * tenant.throttled
            used.stalled += seconds * tenant.stalled
            used.oom_kills = max(used.oom_kills, tenant.oom_kills)

    def write_cores(self) -> None:
        """Write what the agent reads twice a second: each core's main thread, and the CPUs.

        To be called often: the agent takes no thread to run for longer than the time between two looks, so that what
        a late write catches up at once is lost to it.
        """
        self._cpus()
        for number, sums in enumerate(self._cores.values()):
            self._thread(number, sums)

    def write_rest(self) -> None:
        """Write what the agent reads every few seconds: the machine, who the cores are, the tenants."""
        self._machine()
        for number, row in enumerate(self._cores):
            self._core(number, row)
        for row, used in self._tenants.items():
            self._tenant(row, used)

    def _cpus(self) -> None:
        cpus = []
        for number, sums in enumerate(self._cores.values()):
            first = CPUS_A_CORE * number
            cpus += [(first, sums.busy + sums.others)]
            cpus += [(first + other, sums.others) for other in range(1, CPUS_A_CORE)]
        cpus.append((self._spare, 0.0))
        ticks = {cpu: round(seconds * TICKS_PER_SECOND) for cpu, seconds in cpus}
        lines = [_cpu("cpu ", sum(ticks.values())), *(_cpu(f"cpu{cpu}", n) for cpu, n in ticks.items())]
        _write(self.root / "proc/stat", "\n".join(lines))

    @property
    def _spare(self) -> int:
        """A CPU that no core is bound to, so that none is bound to all."""
        return CPUS_A_CORE * len(self._cores)

    def _machine(self) -> None:
        total = 256 * GIBIBYTE // 1024
        _write(self.root / "proc/meminfo", f"MemTotal: {total} kB\nMemAvailable: {total // 2} kB")
        for resource in ("cpu", "memory", "io"):
            _write(self.root / "proc/pressure" / resource, _pressure(0.0))
        _write(self.root / "sys/devices/system/cpu/online", f"0-{self._spare}")
        _write(self.root / "sys/fs/cgroup/cgroup.controllers", "cpu io memory")

    def _core(self, number: int, row: str) -> None:
        pid, first = pid_of(number), CPUS_A_CORE * number
        folder = self.root / "proc" / str(pid)
        _write(folder / "cmdline", "\0".join(self.arguments[row]) + "\0", end="")
        _write(folder / f"task/{pid}/status", f"Cpus_allowed_list:\t{first}-{first + CPUS_A_CORE - 1}")

    def _thread(self, number: int, sums: _Core) -> None:
        pid, first = pid_of(number), CPUS_A_CORE * number
        folder = self.root / "proc" / str(pid)
        ticks = str(round(sums.busy * TICKS_PER_SECOND))
        # Fields 3 to 39 of proc(5): state, parent, … utime, stime, … start time, … pages, … processor.
        stat = ["S", "1", *["0"] * 9, ticks, "0", *["0"] * 6, "4242", "0", "262144", *["0"] * 14, str(first)]
        text = f"{pid} (VLLM::EngineCor) {' '.join(stat)}"
        _write(folder / "stat", text)
        _write(folder / f"task/{pid}/stat", text)
        running = f"{round(sums.busy * 1e9) + 1} {round(sums.waited * 1e9)} 1"
        _write(folder / f"task/{pid}/schedstat", running)

    def _tenant(self, row: str, used: _Tenant) -> None:
        folder = self.root / "sys/fs/cgroup" / row
        usage = round(self.seconds * 1e6)
        throttled = f"nr_periods {round(used.periods)}\nnr_throttled {round(used.throttled)}"
        _write(folder / "cpu.stat", f"usage_usec {usage}\n{throttled}\nthrottled_usec 0")
        _write(folder / "cpu.max", "100000 100000")
        _write(folder / "memory.current", str(4 * GIBIBYTE))
        _write(folder / "memory.max", str(4 * GIBIBYTE))
        _write(
            folder / "memory.events", f"low 0\nhigh 0\nmax 0\noom {used.oom_kills}\noom_kill {used.oom_kills}"
        )
        _write(folder / "memory.pressure", _pressure(used.stalled))


def _cpu(name: str, ticks: int) -> str:
    return f"{name} {ticks} 0 0 0 0 0 0 0 0 0"


def _pressure(stalled: float) -> str:
    averages = "avg10=0.00 avg60=0.00 avg300=0.00"
    return f"some {averages} total={round(stalled * 1e6)}\nfull {averages} total=0"


def _write(path: Path, text: str, end: str = "\n") -> None:
    """Replace the file at once: a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_text(text + end, encoding="utf-8")
    draft.replace(path)
