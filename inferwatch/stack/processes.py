"""Services -> detached processes with a record on disk, so that we end what we started and nothing else."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import psutil
import urllib3

from inferwatch.stack.errors import StackError
from inferwatch.stack.progress import Reporter, last_lines
from inferwatch.stack.state import Record

# psutil derives the start time from boot time and clock ticks; both readings may round.
START_TIME_TOLERANCE_SECONDS = 1.0
TERM_GRACE_SECONDS = 10.0
TAIL_LINES = 15


@dataclass(frozen=True)
class Service:
    """
    One process to run.

    Attributes:
        ready_path: answers 200 at *url* once the service works.
        env: added to our own environment.
        config_files: read at start; a change of their bytes needs a reload, or a restart without one.
        reload_path: POSTed to after such a change.
        cores: the CPU cores it may use, all when empty.
        last: started when all others are ready.
        extra_ports: loopback ports that it listens on beside that of *url*.
    """

    name: str
    argv: tuple[str, ...]
    url: str
    ready_path: str
    env: Mapping[str, str] = field(default_factory=dict)
    config_files: tuple[Path, ...] = ()
    reload_path: str | None = None
    cores: tuple[int, ...] = ()
    ready_timeout_seconds: float = 60.0
    last: bool = False
    extra_ports: tuple[int, ...] = ()

    def command_digest(self) -> str:
        """Changes when the process must be started anew."""
        facts: list[object] = [self.argv, sorted(self.env.items()), self.cores]
        if self.reload_path is None:
            facts.append(self.config_digest())
        return sha256(json.dumps(facts).encode()).hexdigest()

    def config_digest(self) -> str:
        """Changes when its configuration does."""
        digest = sha256()
        for path in self.config_files:
            digest.update(path.read_bytes() + b"\0")
        return digest.hexdigest()


def find(record: Record) -> psutil.Process | None:
    """The live process of *record*, None when it ended or its number now belongs to another."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(record.pid, os.WNOHANG)
    try:
        process = psutil.Process(record.pid)
        same = abs(process.create_time() - record.created) <= START_TIME_TOLERANCE_SECONDS
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None


def start(service: Service, logs_dir: Path) -> Record:
    """Start *service* in a session of its own, output to ``<logs>/<name>.log``; it outlives us."""
    logs_dir.mkdir(parents=True, exist_ok=True)
    log = logs_dir / f"{service.name}.log"
    ours = os.sched_getaffinity(0)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        if service.cores:
            os.sched_setaffinity(0, service.cores)
        pid = os.posix_spawn(
            service.argv[0],
            service.argv,
            {**os.environ, **service.env},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
    except OSError as error:
        raise StackError(f"{service.name}: {service.argv[0]} cannot be run ({error.strerror})") from error
    finally:
        os.sched_setaffinity(0, ours)
    return Record(
        name=service.name,
        pid=pid,
        created=psutil.Process(pid).create_time(),
        url=service.url,
        ready_path=service.ready_path,
        log=str(log),
        command_digest=service.command_digest(),
        config_digest=service.config_digest(),
    )


def wait_ready(service: Service, record: Record, reporter: Reporter) -> None:
    """Return once the service answers; StackError with its log's end when it dies or stays silent."""
    started = time.monotonic()
    with urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(total=2.0)) as pool:
        while True:
            try:
                if pool.request("GET", service.url + service.ready_path, redirect=False).status == 200:
                    return
            except urllib3.exceptions.HTTPError:
                pass  # not listening yet: what we wait for
            waited = time.monotonic() - started
            if find(record) is None:
                trouble = "ended while starting"
            elif waited > service.ready_timeout_seconds:
                trouble = f"is not ready after {waited:.0f} s"
            else:
                reporter.progress(f"waiting for {service.name} · {waited:.0f} s")
                time.sleep(0.1)
                continue
            raise StackError(
                f"{service.name} {trouble}; the end of {record.log}:\n"
                f"{last_lines(Path(record.log), TAIL_LINES)}"
            )


def stop(record: Record, grace_seconds: float = TERM_GRACE_SECONDS) -> bool:
    """
    End the process group of *record*: TERM, then KILL after *grace_seconds*.

    Returns whether anything was running. A process that merely has the recorded number is left alone.
    """
    members = _members(record)
    if not members:
        return False
    for process in members:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGTERM)
            # A stopped process would sleep through TERM.
            process.send_signal(signal.SIGCONT)
    _, alive = psutil.wait_procs(members, timeout=grace_seconds)
    for process in {*alive, *_members(record)}:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, timeout=grace_seconds)
    return True


def _members(record: Record) -> list[psutil.Process]:
    """The recorded process and what it left in its group; the kernel keeps the number while the group lives."""
    leader = find(record)
    if leader is None and psutil.pid_exists(record.pid) and not _is_zombie(record.pid):
        return []
    members = [leader] if leader else []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
            in_group = process.pid != record.pid and os.getpgid(process.pid) == record.pid
            younger = process.create_time() >= record.created - START_TIME_TOLERANCE_SECONDS
            if in_group and younger and not _is_zombie(process.pid):
                members.append(process)
    return members


def _is_zombie(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
