"""Mounts -> paths that are missing, unreadable for the container's user, or not writable by it (case A66)."""

import stat
from collections.abc import Mapping
from pathlib import Path

from inferwatch.compose.images import Image
from inferwatch.compose.model import Mount, Project, Service

WORLD_READ, WORLD_SEARCH = stat.S_IROTH, stat.S_IXOTH
FROM_HOST = ("/proc", "/sys")


def faults(project: Project, images: Mapping[str, Image]) -> list[str]:
    """Every mount that would fail at the first start on a clean Linux host."""
    found = []
    for service in project:
        for mount in service.mounts:
            found += [f"{service.name}: {text}" for text in _faults(project, service, mount, images)]
    unused = project.volumes - {m.source for s in project for m in s.mounts if m.kind == "volume"}
    return [*found, *(f"volume {name} is mounted nowhere; remove it" for name in sorted(unused))]


def _faults(project: Project, service: Service, mount: Mount, images: Mapping[str, Image]) -> list[str]:
    if mount.kind == "volume":
        return _volume(project, service, mount, images)
    if mount.source in FROM_HOST:
        return [] if mount.read_only else [f"{mount.source} is mounted writable; add :ro"]
    return _bind(project.folder, mount)


def _bind(folder: Path, mount: Mount) -> list[str]:
    path = Path(mount.source)
    shown = path.relative_to(folder) if path.is_relative_to(folder) else path
    if not mount.read_only:
        return [
            f"./{shown} is written from the container: a folder that the engine makes belongs to root and its user "
            f"cannot write it; use a named volume"
        ]
    if not path.exists():
        return [f"./{shown} does not exist; the engine would make an empty folder there"]
    if path.suffix and path.is_dir() != (not Path(mount.target).suffix):
        return [f"./{shown} and {mount.target}: one is a file, the other a folder"]
    closed = [p for p in ([path, *path.rglob("*")] if path.is_dir() else [path]) if not _readable(p)]
    return [f"{p} cannot be read by the container's user; chmod a+rX" for p in closed]


def _readable(path: Path) -> bool:
    mode = path.stat().st_mode
    return bool(mode & WORLD_READ) and (not path.is_dir() or bool(mode & WORLD_SEARCH))


def _volume(project: Project, service: Service, mount: Mount, images: Mapping[str, Image]) -> list[str]:
    if mount.source not in project.volumes:
        return [f"volume {mount.source} is not declared under volumes"]
    if mount.read_only:
        return []
    owners = _owners(project, mount.source, images)
    if not owners:
        return [
            f"no image owns {mount.target}: the empty volume {mount.source} belongs to root; make the folder"
        ]
    uid = _uid(service, images)
    if owners != {uid}:
        return [
            f"runs as {uid}, but volume {mount.source} belongs to {min(owners)}; it cannot write {mount.target}"
        ]
    return []


def _owners(project: Project, volume: str, images: Mapping[str, Image]) -> set[int]:
    """
    Who may own the volume after its first mount: the owner of that folder in the image that mounts it first.

    Services that wait for another one that mounts it too are never the first.
    """
    users = {s.name: (s, m) for s in project for m in s.mounts if m.kind == "volume" and m.source == volume}
    found = set()
    for service, mount in users.values():
        if any(name in users for name in service.depends_on):
            continue
        image = images.get(service.repository)
        if image and mount.target in image.folders:
            found.add(image.owner(mount.target)[0])
    return found


def _uid(service: Service, images: Mapping[str, Image]) -> int:
    user = service.user.partition(":")[0]
    image = images.get(service.repository)
    return int(user) if user.isdigit() else (image.uid if image else 0)
