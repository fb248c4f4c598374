"""One container's command, run natively: its own root of the image's files, its mounts, its user, no rights.

A child of `unshare --mount`, as root; reads what to do as JSON on standard input and becomes the command.
Everything that it mounts vanishes with it.
"""

import ctypes
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP = 38, 24
LAST_CAPABILITY = 63
CODE_FOLDERS = ("usr", "bin", "sbin", "lib", "lib64")


@dataclass(frozen=True)
class Box:
    """
    What a container sees and is.

    Attributes:
        root: an empty folder to build the root on.
        binds: (host path, path in the container, read-only), in order.
        has_system: whether the image has a C library and Python; else it is the binds and nothing more.
        hosts: names that resolve to 127.0.0.1.
    """

    root: str
    command: tuple[str, ...]
    environment: dict[str, str]
    uid: int
    gid: int
    groups: tuple[int, ...]
    working_dir: str
    binds: tuple[tuple[str, str, bool], ...]
    tmpfs: tuple[str, ...]
    has_system: bool
    hosts: tuple[str, ...]

    def as_json(self) -> bytes:
        """For the child's standard input."""
        return json.dumps(asdict(self)).encode()


def main() -> None:
    """Build the root, drop all rights, become the command."""
    raw: dict[str, Any] = json.load(sys.stdin)
    box = Box(**raw)
    root = Path(box.root)
    _mount("--make-rprivate", "/")
    _mount("-t", "tmpfs", "-o", "mode=0755", "none", str(root))
    _system(box, root)
    for source, target, read_only in box.binds:
        _bind(source, root / target.lstrip("/"), read_only=read_only)
    for entry in box.tmpfs:
        path, _, options = entry.partition(":")
        _mount("-t", "tmpfs", "-o", options or "mode=1777", "none", str(_folder(root, path)))
    _mount("-o", "remount,ro,mode=0755", str(root))
    _become(box, root)


def _system(box: Box, root: Path) -> None:
    (root / "etc").mkdir()
    (root / "etc/hosts").write_text("".join(f"127.0.0.1 {name}\n" for name in ("localhost", *box.hosts)))
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/false\nnobody:x:65534:65534::/:/bin/false\n")
    for path in ("/proc", "/dev"):
        folder = _folder(root, path)
        _mount("--rbind", path, str(folder))
    for name in CODE_FOLDERS if box.has_system else ():
        source = Path("/") / name
        if source.is_symlink():
            (root / name).symlink_to(source.readlink())
        elif source.is_dir():
            _bind(str(source), root / name, read_only=True)


def _folder(root: Path, path: str) -> Path:
    folder = root / path.lstrip("/")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _bind(source: str, target: Path, *, read_only: bool) -> None:
    if Path(source).is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    _mount("--bind", source, str(target))
    if read_only:
        _mount("-o", "remount,ro,bind", str(target))


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def _become(box: Box, root: Path) -> None:
    os.chroot(root)
    os.chdir(box.working_dir)
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(LAST_CAPABILITY + 1):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # numbers that the kernel does not know are refused
    os.setgroups(box.groups)
    os.setgid(box.gid)
    os.setuid(box.uid)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    os.execvpe(box.command[0], box.command, box.environment)


if __name__ == "__main__":
    main()
