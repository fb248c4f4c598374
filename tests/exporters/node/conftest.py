"""What the node agent's tests share: a recording or a mock driven through the real collectors."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import slo.spec
from exporters.node.agent import Agent
from exporters.node.config import NodeConfig, NodeFile
from exporters.node.nvml import Nvml
from exporters.node.recorded import RecordedNvml

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "node"
_LINE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Exposition:
    """A scrape's text, asked by family and labels."""

    def __init__(self, body: bytes) -> None:
        self.text = body.decode()
        self.samples: list[tuple[str, dict[str, str], float]] = []
        for line in self.text.splitlines():
            if not line.startswith("#"):
                found = _LINE.match(line)
                assert found, f"not a sample line: {line}"
                self.samples.append((found[1], dict(_LABEL.findall(found[2] or "")), float(found[3])))

    def all(self, family: str, **labels: str) -> list[tuple[dict[str, str], float]]:
        """(labels, value) of every sample of that family with these labels."""
        return [
            (have, value)
            for name, have, value in self.samples
            if name == family and labels.items() <= have.items()
        ]

    def one(self, family: str, **labels: str) -> float:
        """The value of the only such sample."""
        found = self.all(family, **labels)
        assert len(found) == 1, f"{family}{labels}: {found}"
        return found[0][1]

    def states(self, family: str, **labels: str) -> set[str]:
        """The label `state` of the samples that are 1."""
        return {have["state"] for have, value in self.all(family, **labels) if value == 1}


class Driven:
    """An agent whose rounds the test runs, on a clock of its own."""

    def __init__(self, nvml: Nvml, config: NodeConfig) -> None:
        self.now = 1000.0
        self.agent = Agent(nvml, config, slo.spec.load().node)
        self.agent.gpu.slow_round(self.now)

    def run(self, seconds: float = 1.0) -> None:
        """Every cadence as often as it falls due within `seconds`."""
        gpu, host = self.agent.gpu, self.agent.host
        for tick in range(round(seconds * 10)):
            self.now += 0.1
            gpu.sampler_round(self.now)
            if tick % 10 == 9:
                gpu.gpm_round(self.now)
        gpu.process_round(self.now)
        host.process_round(self.now)
        host.thread_round(self.now)
        gpu.slow_round(self.now)

    def scrape(self, scraper: str = "prometheus") -> Exposition:
        """A scrape at this moment."""
        return Exposition(self.agent.scrape(scraper, self.now))


Drive = Callable[..., Driven]


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    """An empty /proc and an empty /sys."""
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    proc.mkdir()
    sys.mkdir()
    return proc, sys


@pytest.fixture
def drive(roots: tuple[Path, Path]) -> Drive:
    """Build a Driven from a recording's document or any NVML."""

    def build(source: dict[str, Any] | Nvml, file: NodeFile | None = None) -> Driven:
        nvml: Nvml = RecordedNvml(source, clock=lambda: 0.0) if isinstance(source, dict) else source
        return Driven(nvml, NodeConfig("node-a", *roots, file or NodeFile()))

    return build


@pytest.fixture
def case() -> Callable[[str], Any]:
    """Read a file of tests/fixtures/node/cases."""
    return lambda name: json.loads((FIXTURES / "cases" / name).read_text(encoding="utf-8"))


@pytest.fixture
def h200() -> dict[str, Any]:
    """The recorded H200: frames idle, compute, memory."""
    document: dict[str, Any] = json.loads((FIXTURES / "nvml-h200.json").read_text(encoding="utf-8"))
    return document


@pytest.fixture
def phase(h200: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    """One frame of the recorded H200 as a machine of its own."""

    def pick(name: str) -> dict[str, Any]:
        return {"driver": h200["driver"], **next(f for f in h200["frames"] if f["phase"] == name)}

    return pick
