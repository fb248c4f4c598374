"""A Debian or Ubuntu package -> its files unpacked into the cache; nothing is installed, no service starts."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from inferwatch.stack.errors import StackError
from inferwatch.stack.progress import Reporter, run_logged


def candidate(package: str) -> str | None:
    """Upstream version that apt would give (``2.42.0`` of ``2.42.0+ds-5``), None when it knows none."""
    if shutil.which("apt-cache") is None or shutil.which("dpkg") is None:
        return None
    answer = subprocess.run(
        ["apt-cache", "policy", package],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    match = re.search(r"Candidate: (?:\d+:)?(\d+(?:\.\d+)*)", answer.stdout)
    return match[1] if match else None


def refresh(reporter: Reporter, log: Path) -> None:
    """Fetch the package lists once, where apt has none yet and we may."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return
    run_logged(["apt-get", "update"], log=log, reporter=reporter, doing="fetching apt's package lists")


def unpack(package: str, out: Path, reporter: Reporter, log: Path) -> None:
    """Download *package* and move its ``usr/bin`` to *out*; StackError when apt or dpkg refuses."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as work:
        run_logged(
            ["apt-get", "download", package],
            log=log,
            reporter=reporter,
            doing=f"downloading the package {package}",
            cwd=Path(work),
        )
        files = sorted(Path(work).glob("*.deb"))
        if len(files) != 1:
            raise StackError(f"apt-get download {package} left {len(files)} packages; see {log}")
        tree = Path(work) / "tree"
        run_logged(
            ["dpkg", "-x", str(files[0]), str(tree)], log=log, reporter=reporter, doing=f"unpacking {package}"
        )
        shutil.rmtree(out, ignore_errors=True)
        (tree / "usr" / "bin").rename(out)
