"""The command lines of the load client, Locust in its own process: alone, as a master, as a worker elsewhere."""

import itertools
import math
import os
import socket
import subprocess
import sys
from pathlib import Path

from loadtests.plan import LoadPlan

ROOT = Path(__file__).resolve().parent.parent
LOG = "locust.log"
_LOOPBACK = "127.0.0.1"
_WORKERS_COME_S = 600
_TABLES = "Type     Name"


def client_command(
    plan: LoadPlan, plan_file: Path, folder: Path, listen: tuple[str, int] | None
) -> list[str]:
    """Carry out *plan* alone, with processes of its own, or, with *listen*, as master of workers that join there."""
    peak = max((max(s.start, s.end) for s in plan.arrival.segments), default=1.0)
    per_process = math.ceil(peak / plan.processes) if plan.arrival.kind == "closed" else 1
    users = str(max(per_process, 1) * plan.processes)
    command = [*_locust(folder), "--headless", "--only-summary", "--stop-timeout", "0"]
    command += ["-u", users, "-r", users, "--plan", str(plan_file)]
    if listen is not None:
        host, port = listen
        command += ["--master", "--expect-workers", str(plan.processes)]
        command += ["--expect-workers-max-wait", str(_WORKERS_COME_S)]
        command += ["--master-bind-host", host, "--master-bind-port", str(port)]
    elif plan.processes > 1:
        # A port of its own: on Locust's default one, workers of two runs at a time would join one master.
        port = _free_port()
        command += ["--processes", str(plan.processes), *_at("--master", _LOOPBACK, port)]
        command += _at("--master-bind", _LOOPBACK, port)
    return [*command, "MixUser"]


def worker_command(master: tuple[str, int], folder: Path, processes: int) -> list[str]:
    """Be *processes* workers of a master on another host, which has the plan and gets the records."""
    several = ["--processes", str(processes)] if processes > 1 else []
    return [*_locust(folder), "--worker", *several, *_at("--master", *master), "--send-records", "MixUser"]


def start(command: list[str], folder: Path) -> "subprocess.Popen[bytes]":
    """Start the client in a process group of its own; what it says goes into *folder*'s log."""
    with (folder / LOG).open("wb") as log:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )


def failure(code: int, folder: Path, count: int = 8) -> str:
    """What to say of a client that ended with *code*: the end of its log, before Locust's tables, and where it is."""
    path = folder / LOG
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    said = list(itertools.takewhile(lambda line: not line.startswith(_TABLES), lines))
    return f"the load client ended with code {code}: see {path}\n" + "\n".join(said[-count:])


def _locust(folder: Path) -> list[str]:
    locustfile = str(ROOT / "loadtests" / "locustfile.py")
    return [
        sys.executable,
        "-m",
        "locust",
        "-f",
        locustfile,
        "--loglevel",
        "WARNING",
        "--records",
        str(folder),
    ]


def _at(option: str, host: str, port: int) -> list[str]:
    return [f"{option}-host", host, f"{option}-port", str(port)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        return int(probe.getsockname()[1])
