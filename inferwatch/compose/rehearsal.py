"""docker-compose.yml -> each container's command run natively with the same files, user, mounts and rights.

A child of `unshare --net`: ports and names are the containers' own. Prints one JSON object.
"""

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fcntl import ioctl
from pathlib import Path
from typing import Any

from inferwatch.compose import dockerfile, images, model
from inferwatch.compose.box import Box
from inferwatch.compose.images import Image
from inferwatch.compose.model import Project, Service
from inferwatch.promapi import PromError, Prometheus
from inferwatch.stack import receiver

READY_SECONDS, SEEN_SECONDS = 90.0, 60.0
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "prom/prometheus": ("/bin/prometheus", "/bin/promtool"),
    "prom/alertmanager": ("/bin/alertmanager", "/bin/amtool"),
    "otel/opentelemetry-collector-contrib": ("/otelcol-inferwatch",),
    "jaegertracing/jaeger": ("/jaeger",),
}
"""Programs of foreign images that we have too; the first is the image's entry point."""
GRAFANA = "grafana"


class RehearsalError(RuntimeError):
    """A container's command fails; the text has the service and the end of its output."""


@dataclass
class Stage:
    """What runs, and where it keeps its files."""

    root: Path
    project: Project
    images: Mapping[str, Image]
    binaries: Mapping[str, str]
    work: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    peak_bytes: dict[str, int] = field(default_factory=dict)

    def box(self, service: Service, command: tuple[str, ...]) -> Box:
        """The service's container, with *command* in it."""
        uid, _, gid = service.user.partition(":")
        folder = self.work / "roots" / f"{service.name}-{time.monotonic_ns()}"
        folder.mkdir(parents=True)
        ours = service.repository in images.OURS
        environment = {k: str(v) for k, v in (service.raw.get("environment") or {}).items()}
        return Box(
            root=str(folder),
            command=command,
            environment={
                "PATH": "/app/.venv/bin:/usr/bin:/bin",
                "HOME": "/tmp",
                "PYTHONPATH": "/app",
                **environment,
            }
            | {"PYTHONDONTWRITEBYTECODE": "1"},
            uid=int(uid),
            gid=int(gid or uid),
            groups=tuple(map(int, service.raw.get("group_add") or ())),
            working_dir="/app" if ours else "/",
            binds=(*self._files(service, ours=ours), *self._mounts(service)),
            tmpfs=tuple(map(str, service.raw.get("tmpfs") or ())),
            has_system=ours,
            hosts=tuple(sorted({h for s in self.project for h in s.hosts})),
        )

    def _files(self, service: Service, *, ours: bool) -> list[tuple[str, str, bool]]:
        if not ours:
            return [(self.binaries[p], p, True) for p in PROGRAMS[service.repository]]
        own = [(str(source), f"/app/{target}", True) for source, target in dockerfile.held(self.root)]
        python = [(str(Path(sys.prefix)), "/app/.venv", True)]
        if not sys.base_prefix.startswith("/usr"):
            python.append((sys.base_prefix, sys.base_prefix, True))
        return [*own, *python]

    def _mounts(self, service: Service) -> list[tuple[str, str, bool]]:
        return [
            (str(self.work / "volumes" / m.source) if m.kind == "volume" else m.source, m.target, m.read_only)
            for m in service.mounts
        ]


def run(root: Path, profile: str, binaries: Mapping[str, str]) -> dict[str, Any]:
    """Rehearse *profile*; returns what was seen. Raises RehearsalError."""
    _loopback_up()
    project = model.load(root / "docker-compose.yml")
    with tempfile.TemporaryDirectory(prefix="inferwatch-rehearsal-") as work:
        Path(work).chmod(0o755)
        stage = Stage(root, project, images.known(root / dockerfile.FILE), binaries, Path(work))
        _volumes(stage)
        try:
            return _play(stage, profile)
        finally:
            for process in reversed(stage.running.values()):
                _end(process)


def _play(stage: Stage, profile: str) -> dict[str, Any]:
    ran, left_out = [], []
    for service in _in_order(stage.project, profile):
        if service.repository not in (*images.OURS, *PROGRAMS):
            left_out.append(service.name)
            continue
        _start(stage, service)
        ran.append(service.name)
    _as_grafana(stage)
    seen = _seen(stage)
    for name in stage.running:
        _measure(stage, name)
    return {"ran": ran, "left_out": left_out, "peak_bytes": stage.peak_bytes, **seen}


def _in_order(project: Project, profile: str) -> list[Service]:
    wanted = [s for s in project if not s.profiles or profile in s.profiles]
    ordered: list[Service] = []
    while len(ordered) < len(wanted):
        names = {s.name for s in ordered}
        ready = [s for s in wanted if s.name not in names and _waits(s, wanted) <= names]
        if not ready:
            raise RehearsalError("services wait for each other; see the dependencies")
        ordered += ready
    return ordered


def _waits(service: Service, wanted: list[Service]) -> set[str]:
    return set(service.depends_on) & {s.name for s in wanted}


def _start(stage: Stage, service: Service) -> None:
    command = service.words
    if service.repository in PROGRAMS:
        command = (PROGRAMS[service.repository][0], *command)
    log = stage.work / f"{service.name}.log"
    process = _spawn(stage.box(service, command), log)
    if service.raw.get("restart") == "no":
        if process.wait(READY_SECONDS) != 0:
            raise RehearsalError(f"{service.name} ends with {process.returncode}: {_end_of(log)}")
        return
    stage.running[service.name] = process
    if not service.health:
        return  # its image has nothing to ask with; Prometheus will say whether it is up
    deadline = time.monotonic() + READY_SECONDS
    probe = stage.work / f"{service.name}.health.log"
    while _spawn(stage.box(service, service.health), probe).wait(READY_SECONDS) != 0:
        if process.poll() is not None:
            raise RehearsalError(f"{service.name} ended with {process.returncode}: {_end_of(log)}")
        if time.monotonic() > deadline:
            raise RehearsalError(f"{service.name} is not healthy: {_end_of(probe)}; it said {_end_of(log)}")
        time.sleep(0.5)


def _spawn(box: Box, log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as sink:
        process = subprocess.Popen(
            ["unshare", "--mount", sys.executable, "-m", "inferwatch.compose.box"],
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=sink,
            cwd=Path(__file__).resolve().parents[2],
        )
    assert process.stdin is not None  # asked for above
    process.stdin.write(box.as_json())
    process.stdin.close()
    return process


def _as_grafana(stage: Stage) -> None:
    """There is no Grafana to run; what its user must be able to read is read as that user."""
    service = stage.project.service(GRAFANA)
    if service is None:
        return
    paths = [m.target for m in service.mounts if m.read_only]
    script = (
        "import pathlib,sys\nfor top in sys.argv[2:]:\n for p in pathlib.Path(top).rglob('*'):\n"
        "  p.is_file() and 'notify' not in p.parts and p.read_bytes()\n"
        "password = pathlib.Path(sys.argv[1]).read_text()\nassert len(password) >= 32, 'no password'\n"
    )
    secret = str(service.raw["environment"]["GF_SECURITY_ADMIN_PASSWORD__FILE"])
    stand_in = model.Service(GRAFANA, {**service.raw, "image": f"{images.OURS[0]}:local"}, service.mounts, ())
    log = stage.work / "grafana.log"
    box = stage.box(stand_in, ("python", "-c", script, secret, *paths))
    if _spawn(box, log).wait(READY_SECONDS) != 0:
        raise RehearsalError(f"grafana's user cannot read its files: {_end_of(log)}")


def _seen(stage: Stage) -> dict[str, Any]:
    """Wait until Prometheus sees every target up and the receiver got the sign of life; what was seen."""
    deadline = time.monotonic() + SEEN_SECONDS
    notifications = stage.work / "volumes" / "notifications" / "notifications.jsonl"
    state: dict[str, Any] = {}
    with Prometheus("http://127.0.0.1:9090") as client:
        while True:
            try:
                targets = client.targets()
                rules = [rule for group in client.rules() for rule in group.rules]
            except PromError as error:
                raise RehearsalError(f"prometheus: {error}") from error
            state = {
                "targets_up": sum(t.health == "up" for t in targets),
                "targets": len(targets),
                "rules": len(rules),
                "rules_failing": sorted({f"{r.name}: {r.last_error}" for r in rules if r.health == "err"}),
                "notifications": len(receiver.read(notifications)),
            }
            done = state["targets"] and state["targets_up"] == state["targets"] and state["notifications"]
            if done or time.monotonic() > deadline:
                return state
            time.sleep(1.0)


def _measure(stage: Stage, name: str) -> None:
    status = Path(f"/proc/{stage.running[name].pid}/status").read_text(encoding="utf-8")
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    stage.peak_bytes[name] = int(peak) * 1024


def _volumes(stage: Stage) -> None:
    """Empty volumes, owned as the folders of the images that they are laid over."""
    for service in stage.project:
        image = stage.images.get(service.repository)
        for mount in service.mounts:
            folder = stage.work / "volumes" / mount.source
            if mount.kind == "volume" and image and mount.target in image.folders and not folder.exists():
                folder.mkdir(parents=True)
                uid, gid, mode = image.owner(mount.target)
                os.chown(folder, uid, gid)
                folder.chmod(mode)


def _loopback_up() -> None:
    """A new network namespace has its loopback interface down."""
    up, running = 0x1, 0x40
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        ioctl(handle, 0x8914, struct.pack("16sh", b"lo", up | running))  # SIOCSIFFLAGS


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _end_of(log: Path) -> str:
    return " | ".join(log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-6:])


def is_possible() -> str:
    """Empty when this machine allows it, else what is missing."""
    if os.geteuid() != 0:
        return "needs root on Linux, for namespaces of its own"
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        return "needs unshare and mount (util-linux)"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "true"], capture_output=True, text=True, check=False
    )
    return "" if tried.returncode == 0 else f"this kernel refuses namespaces: {tried.stderr.strip()}"


def main() -> int:
    """Arguments: checkout, profile, then PATH=HOSTPATH for each program. Prints the result as JSON."""
    root, profile, *pairs = sys.argv[1:]
    try:
        result = run(Path(root), profile, dict(pair.split("=", 1) for pair in pairs))
    except RehearsalError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(result) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
