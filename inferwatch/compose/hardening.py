"""Services -> what runs with more rights, more memory or a vaguer image than it should; exceptions with why."""

import re
from collections.abc import Iterator, Mapping

from inferwatch.compose.model import Project, Service

ALLOWED: Mapping[tuple[str, str], str] = {
    ("exporter-node", "pid"): "it tells which process uses a GPU and how busy an engine's threads are",
    ("exporter-node", "mount /proc"): "that is where processes and pressure are read, read-only",
    ("exporter-node", "mount /sys"): "that is where cgroups and PCIe links are read, read-only",
    ("exporter-node", "devices"): "NVML needs the driver; capability `utility`, which cannot compute",
    ("exporter-node-host", "pid"): "it tells how busy an engine's threads are",
    ("exporter-node-host", "mount /proc"): "that is where processes and pressure are read, read-only",
    ("exporter-node-host", "mount /sys"): "that is where cgroups are read, read-only",
    ("otel-firing", "pid"): "it tells the sampler's process of firing models; the namespace is the sampler's",
    ("engine-gpu", "devices"): "the engine computes on the GPU",
    ("engine-gpu", "tmpfs exec"): "Triton compiles kernels there and loads them",
}
"""Exceptions to the rule: (service, what) -> why. docs/deploy.md lists the same."""

HOST_FOLDERS = ("/proc", "/sys", "/var/run", "/run", "/etc", "/dev", "/")
PULLED_TAG = re.compile(r"[^:@]+:v?\d+(\.\d+)+[\w.-]*(@sha256:[0-9a-f]{64})?")
LOCAL_TAG = ":local"


def faults(project: Project) -> list[str]:
    """Every service that breaks the rule and is no listed exception; a listed one that is none any more too."""
    found, used = [], set()
    for service in project:
        for what, text in _deviations(service):
            if (service.name, what) in ALLOWED:
                used.add((service.name, what))
            else:
                found.append(f"{service.name}: {text}")
    found += [
        f"{name}: {what} is listed as an exception and is none; remove it"
        for name, what in ALLOWED
        if (name, what) not in used and project.service(name)
    ]
    return found


def _deviations(service: Service) -> Iterator[tuple[str, str]]:
    raw = service.raw
    user = service.user.partition(":")[0]
    if not user.isdigit() or int(user) == 0:
        yield "user", f"user {service.user or 'left to the image'}; write a number that is not 0"
    if raw.get("read_only") is not True:
        yield "read_only", "its root can be written; set read_only: true"
    if raw.get("cap_drop") != ["ALL"] or raw.get("cap_add"):
        yield "capabilities", "keeps capabilities; cap_drop: [ALL] and no cap_add"
    if "no-new-privileges:true" not in (raw.get("security_opt") or ()):
        yield "privileges", "may gain privileges; security_opt: [no-new-privileges:true]"
    if raw.get("privileged"):
        yield "privileged", "runs privileged; remove that"
    if not service.memory_bytes:
        yield "memory", "has no memory limit; set mem_limit"
    options = (raw.get("logging") or {}).get("options") or {}
    if not options.get("max-size") or not options.get("max-file"):
        yield "logs", "its logs grow without end; set max-size and max-file"
    if raw.get("pid") or raw.get("network_mode") == "host" or raw.get("ipc") == "host":
        yield "pid", "shares a namespace with the host"
    yield from _holes(service)


def _holes(service: Service) -> Iterator[tuple[str, str]]:
    for mount in service.mounts:
        if mount.kind == "bind" and mount.source in HOST_FOLDERS:
            yield f"mount {mount.source}", f"mounts the host's {mount.source}"
        if "docker.sock" in mount.source:
            yield "docker.sock", "mounts the engine's socket, which is root on the host"
    if (service.raw.get("deploy") or {}).get("resources", {}).get("reservations", {}).get("devices"):
        yield "devices", "is given devices"
    if any("exec" in str(entry).replace("noexec", "").split(",") for entry in service.raw.get("tmpfs") or ()):
        yield "tmpfs exec", "may run what it wrote into a tmpfs"


def image_faults(project: Project) -> list[str]:
    """Images that a later pull would change: no tag, or one that moves."""
    found = []
    for service in project:
        image = str(service.raw.get("image", ""))
        local = image.endswith(LOCAL_TAG) and "build" in service.raw
        if not local and not PULLED_TAG.fullmatch(image):
            found.append(f"{service.name}: image {image or 'missing'!r}; pin a version in .env")
    return found


def without_digest(project: Project) -> list[str]:
    """Images that are pinned by tag only."""
    images = {str(s.raw.get("image", "")) for s in project}
    return sorted(i for i in images if "@sha256:" not in i and not i.endswith(LOCAL_TAG))
