"""Ports, host names, dependencies and health checks -> what would not find or wait for each other (case A76)."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from inferwatch.compose.images import Image
from inferwatch.compose.model import Project, Service

HOST_GATEWAY = "host.docker.internal"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LISTEN = re.compile(r"^(?:--(?:web\.)?listen(?:-address)?=)?(?:0\.0\.0\.0):(\d+)$")
_ADDRESS = re.compile(r"(?:https?://)?([a-z][a-z0-9.-]*):(\d{2,5})\b")
PORT_FLAGS = ("--port", "--control-port")
# What an image listens on without being told.
KNOWN_PORTS: Mapping[str, int] = {
    "prom/prometheus": 9090,
    "prom/alertmanager": 9093,
    "grafana/grafana": 3000,
    "grafana/loki": 3100,
    "inferwatch-vllm-cpu": 8000,
}
_PORT_VARIABLE = re.compile(r"INFERWATCH_[A-Z_]+_PORT")


def listens(service: Service) -> set[int]:
    """Ports that the service's command opens on every address of its container."""
    words = service.words
    found = {int(m[1]) for word in words if (m := _LISTEN.match(word))}
    everywhere = "0.0.0.0" in words
    found |= {int(words[i + 1]) for i, w in enumerate(words[:-1]) if w in PORT_FLAGS and everywhere}
    # The collectors and Jaeger are told by their environment.
    found |= {
        int(value)
        for name, value in (service.raw.get("environment") or {}).items()
        if _PORT_VARIABLE.fullmatch(name)
    }
    if not found and service.repository in KNOWN_PORTS:
        found = {KNOWN_PORTS[service.repository]}
    return found


def port_faults(project: Project) -> list[str]:
    """Published ports that the whole network reaches, that clash, or that nothing listens on."""
    found: list[str] = []
    taken: dict[int, list[str]] = {}
    for service in project:
        for port in service.ports:
            if port.host_ip not in LOOPBACK:
                found.append(f"{service.name}: port {port.published} on every address; write 127.0.0.1:…")
            if port.target not in listens(service):
                found.append(
                    f"{service.name}: publishes {port.target}, but listens on {sorted(listens(service))}"
                )
            for other in taken.setdefault(port.published, []):
                if not _apart(project.service(other), service):
                    found.append(f"{service.name}: port {port.published} is {other}'s already")
            taken[port.published].append(service.name)
    return found


def _apart(one: Service | None, other: Service) -> bool:
    """Engines of different profiles take each other's place."""
    return one is not None and bool(one.profiles and other.profiles and not one.profiles & other.profiles)


def dependency_faults(project: Project) -> list[str]:
    """Waits that never end or wait for nothing."""
    found = []
    for service in project:
        for name, wish in service.depends_on.items():
            other = project.service(name)
            if other is None:
                found.append(f"{service.name}: waits for {name}, which is no service")
                continue
            condition, required = wish.get("condition"), wish.get("required", True)
            if condition == "service_healthy" and not other.health:
                found.append(f"{service.name}: waits for {name} to be healthy, which has no health check")
            if condition == "service_completed_successfully" and other.raw.get("restart") != "no":
                found.append(f"{service.name}: waits for {name} to end, which is started again and again")
            always = not service.profiles and other.profiles
            if required and (always or not service.profiles <= (other.profiles or service.profiles)):
                found.append(f"{service.name}: needs {name}, which only profile {min(other.profiles)} starts")
        if _reaches(project, service.name, service.name, set()):
            found.append(f"{service.name}: waits for itself, over others")
    return found


def _reaches(project: Project, start: str, goal: str, seen: set[str]) -> bool:
    service = project.service(start)
    if service is None or start in seen:
        return False
    seen.add(start)
    return any(name == goal or _reaches(project, name, goal, seen) for name in service.depends_on)


def health_faults(project: Project, images: Mapping[str, Image]) -> list[str]:
    """Health checks that call what the image lacks, or ask a port that nothing opens."""
    found = []
    for service in project:
        words, image = service.health, images.get(service.repository)
        if not words or image is None:
            continue
        if words[0] not in image.commands:
            found.append(f"{service.name}: {service.repository} has no {words[0]} to check its health with")
        asked = {
            int(m[2]) for word in words for m in _ADDRESS.finditer(word.replace("127.0.0.1", "localhost"))
        }
        if asked - listens(service):
            found.append(f"{service.name}: its health check asks port {min(asked)}, which it does not open")
    return found


def addresses(text: str) -> Iterator[tuple[str, int]]:
    """Every name:port that *text* names as a target; file names and numbers are none."""
    for match in _ADDRESS.finditer(text):
        if match[1] not in LOOPBACK and not match[1].endswith((".py", ".yml", ".yaml")):
            yield match[1], int(match[2])


def host_faults(project: Project, texts: Mapping[str, tuple[str, str]]) -> list[str]:
    """
    Targets that no service answers to. *texts*: file name -> (service that reads it, content).

    ``host.docker.internal`` needs extra_hosts where it is read, and is wrong for a sibling.
    """
    found = []
    for file, (reader, text) in texts.items():
        for host, port in sorted(set(addresses(text))):
            found += [f"{file}: {fault}" for fault in _target_faults(project, reader, host, port)]
    return found


def _target_faults(project: Project, reader: str, host: str, port: int) -> list[str]:
    if host == HOST_GATEWAY:
        sibling = next((s for s in project if port in listens(s)), None)
        if sibling:
            return [f"{host}:{port} is a sibling; write {sibling.name}:{port}"]
        service = project.service(reader)
        known = [str(e) for e in (service.raw.get("extra_hosts") or ())] if service else []
        if not any(HOST_GATEWAY in entry for entry in known):
            return [f"{host} has no name on Linux; {reader} needs extra_hosts: {host}:host-gateway"]
        return []
    named = [s for s in project if host in s.hosts]
    if not named:
        return [f"{host}:{port}: no service has that name"]
    return [
        f"{host}:{port}: {s.name} listens on {sorted(listens(s))}" for s in named if port not in listens(s)
    ]


def read_texts(project: Project) -> dict[str, tuple[str, str]]:
    """What each service is told of others: its command, its environment, and the files bound into it."""
    found = {}
    for service in project:
        told = [*service.words, *map(str, (service.raw.get("environment") or {}).values())]
        found[f"{service.name}'s command"] = (
            service.name,
            "\n".join(w for w in told if not _LISTEN.match(w)),
        )
        for mount in service.mounts:
            path = Path(mount.source)
            if mount.kind == "bind" and path.is_relative_to(project.folder):
                files = [path] if path.is_file() else sorted(path.rglob("*.y*ml"))
                for file in files:
                    if not file.is_relative_to(project.folder / "alerts"):
                        name = str(file.relative_to(project.folder))
                        found[name] = (service.name, file.read_text(encoding="utf-8"))
    return found
