"""The failure matrix takes ten healthy minutes: it runs beside the tests that follow, and is judged last."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
JUDGED_LAST = "test_scenarios.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the matrix' own tests to the end, whatever else is run."""
    items.sort(key=lambda item: item.path.name == JUDGED_LAST)


@dataclass(frozen=True)
class Matrix:
    """`inferwatch scenarios --ci --json` under way; its words go to files."""

    process: "subprocess.Popen[bytes]"
    result: Path
    log: Path


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
