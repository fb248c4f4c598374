"""`.ci/gate`, as the pull-request workflow runs it, with one short pair: what it leaves and how it ends."""

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from loadtests.rounds import read_rounds

ROOT = Path(__file__).parents[2]


def _four_free_ports() -> int:
    """The first of four ports in a row that nothing listens on."""
    for first in range(21_000, 31_000, 4):
        try:
            for port in range(first, first + 4):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise AssertionError("no four free ports in a row")


def _git(*words: str) -> str | None:
    """What git says of this tree; None where it is no checkout, as when it was unpacked from an archive."""
    if shutil.which("git") is None:
        return None
    said = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return said.stdout if said.returncode == 0 else None


@pytest.mark.integration
def test_the_gate_of_a_pull_request(tmp_path: Path) -> None:
    """This checkout against its own HEAD, or a tree without history against itself. One pair is too few to judge by: refused, told, and by the exit status too."""
    port, out, summary = _four_free_ports(), tmp_path / "out", tmp_path / "summary.md"
    base = "" if _git("rev-parse", "HEAD") is None else "HEAD"
    done = subprocess.run(
        [ROOT / ".ci" / "gate", base, str(out), "--pairs", "1", "--seconds", "2"],
        env={**os.environ, "GATE_PORT": str(port), "GITHUB_STEP_SUMMARY": str(summary)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    table = (out / "gate.md").read_text(encoding="utf-8")
    # 12: too few samples; on a machine that is busy with other tests the client may have been the bottleneck: 14.
    assert done.returncode in (12, 14), done.stderr
    assert re.search(r"\(exit (\d+)\)", table).group(1) == str(done.returncode)
    assert "1 pairs with output tokens, at least 4 are needed" in table
    assert "| ttft" in table
    assert summary.read_text(encoding="utf-8") == table
    assert (out / "compare.html").stat().st_size > 1000
    for build, engine in (("baseline", port), ("candidate", port + 2)):
        (run,) = read_rounds(out / "runs" / build)
        assert run.plan.base_url == f"http://127.0.0.1:{engine}"
        assert any(record.outcome == "ok" for record in run.records)
    assert str(out) not in (_git("worktree", "list") or "")
    for one in range(port, port + 4):
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", one)) != 0, f"something still listens on port {one}"
