"""The failure matrix takes ten healthy minutes: other tests run beside it, those on a real vLLM after it."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MATRIX = "test_scenarios.py"
ALONE = ("test_canary.py", "test_doctor.py", "test_drift.py", "test_loop.py", "test_trace_e2e.py")
"""What needs the machine for itself: a loaded vLLM, or times that are compressed."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order: integration tests beside the matrix, all other tests, the matrix' verdict, what runs alone."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    if item.path.name == MATRIX:
        return 2
    if item.path.name in ALONE:
        return 3
    return 0 if item.get_closest_marker("integration") else 1


@dataclass(frozen=True)
class Matrix:
    """`inferwatch scenarios --ci --json` under way; its words go to files."""

    process: "subprocess.Popen[bytes]"
    result: Path
    log: Path


@pytest.fixture(scope="session", autouse=True)
def beside(request: pytest.FixtureRequest) -> None:
    """Where the matrix is judged in this run, it starts with the first integration test."""
    if any(item.path.name == MATRIX for item in request.session.items):
        request.getfixturevalue("matrix")


@pytest.fixture(scope="session")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    """Start the reduced matrix in a folder of its own; ended with the session if it still runs."""
    folder = tmp_path_factory.mktemp("matrix")
    result, log = folder / "result.json", folder / "log"
    inferwatch = Path(sys.executable).with_name("inferwatch")
    with result.open("wb") as out, log.open("wb") as said:
        process = subprocess.Popen(
            [str(inferwatch), "scenarios", "--ci", "--json", "--dir", str(folder / "run")],
            cwd=ROOT,
            stdout=out,
            stderr=said,
        )
    yield Matrix(process, result, log)
    if process.poll() is None:
        process.terminate()
        process.wait(timeout=120)
