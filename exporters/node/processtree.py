"""/proc -> who each process is; what does not change is read once a process."""

from dataclasses import dataclass
from pathlib import Path

from exporters.node import procfs


@dataclass(frozen=True)
class Process:
    """A process as it started; `title` is its command line, or what it renamed itself to."""

    pid: int
    parent: int
    name: str
    start_ticks: int
    argv: tuple[str, ...]

    @property
    def title(self) -> str:
        """The command line in one piece, else the kernel's name."""
        return " ".join(self.argv) or self.name


class ProcessTree:
    """All processes under a /proc root."""

    def __init__(self, proc_root: Path) -> None:
        self._root = proc_root
        self.processes: dict[int, Process] = {}

    def refresh(self) -> None:
        """See who came and went; a process is read again while it may still rename itself."""
        found: dict[int, Process] = {}
        for path in self._root.iterdir():
            if not path.name.isdecimal():
                continue
            process = self._read(path)
            if process is not None:
                found[process.pid] = process
        self.processes = found

    def _read(self, path: Path) -> Process | None:
        stat = procfs.stat(path / "stat")
        if stat is None:
            return None
        pid = int(path.name)
        known = self.processes.get(pid)
        if known and (known.start_ticks, known.name, known.parent) == (
            stat.start_ticks,
            stat.name,
            stat.parent,
        ):
            return known
        argv = tuple(part for part in (procfs.read(path / "cmdline") or "").split("\0") if part)
        return Process(pid, stat.parent, stat.name, stat.start_ticks, argv)

    def ancestors(self, pid: int) -> list[Process]:
        """The process and its parents, nearest first."""
        found: list[Process] = []
        current = self.processes.get(pid)
        while current is not None and current not in found:
            found.append(current)
            current = self.processes.get(current.parent)
        return found

    def descendants(self, pid: int) -> list[Process]:
        """All children and theirs, in order of pid."""
        inside = {pid}
        found: list[Process] = []
        grew = True
        while grew:
            grew = False
            for process in self.processes.values():
                if process.parent in inside and process.pid not in inside:
                    inside.add(process.pid)
                    found.append(process)
                    grew = True
        return sorted(found, key=lambda p: p.pid)
