"""Recorded and invented engine pages by name, and a published page read back by an independent parser."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from exporters.engine.labels import LabelCache
from exporters.engine.render import EngineVersion, render_reading
from exporters.engine.translate import Reading, translate
from exporters.engine.vllm import ADAPTER

FIXTURES = Path(__file__).parents[2] / "fixtures" / "engine"


@dataclass(frozen=True)
class Page:
    """A published page as prometheus_client reads it."""

    text: str
    samples: list[Sample]

    def values(self, name: str, **labels: str) -> list[float]:
        """Values of the samples of that name whose labels include `labels`."""
        return [s.value for s in self.samples if s.name == name and labels.items() <= s.labels.items()]

    def one(self, name: str, **labels: str) -> float:
        """The value of the only such sample."""
        values = self.values(name, **labels)
        assert len(values) == 1, (name, labels, values)
        return values[0]

    def total(self, name: str, **labels: str) -> float | None:
        """The sum over such samples; None where there is none."""
        values = self.values(name, **labels)
        return sum(values) if values else None

    def labels(self, name: str) -> list[dict[str, str]]:
        """The label sets of the samples of that name."""
        return [dict(s.labels) for s in self.samples if s.name == name]


def read_page(text: str) -> Page:
    """Parse a published page."""
    families = list(text_string_to_metric_families(text))
    return Page(text, [sample for family in families for sample in family.samples])


@dataclass(frozen=True)
class Translation:
    """A translation: the reading itself and the page published from it."""

    reading: Reading
    page: Page


@pytest.fixture
def page() -> Callable[[str], Page]:
    """Text of the exporter -> Page."""
    return read_page


@pytest.fixture
def fixture_path() -> Path:
    """The folder of the engine fixtures."""
    return FIXTURES


@pytest.fixture
def capture() -> Callable[[str], bytes]:
    """Name of a recording -> its bytes."""
    return lambda name: gzip.decompress((FIXTURES / "captures" / f"{name}.txt.gz").read_bytes())


@pytest.fixture
def case() -> Callable[[str, str], bytes]:
    """Case id and file name -> bytes of the file."""

    def read(number: str, name: str) -> bytes:
        (folder,) = (FIXTURES / "cases").glob(f"{number}-*")
        return (folder / name).read_bytes()

    return read


@pytest.fixture
def translated() -> Callable[..., Translation]:
    """Body (and version, aliases, openmetrics) -> Translation, through a cache of its own."""

    def run(
        body: bytes, version: str = "0.32.0", aliases: dict[str, str] | None = None, openmetrics: bool = False
    ) -> Translation:
        reading = translate(body, ADAPTER, LabelCache(aliases), version, 20_000, openmetrics)
        return Translation(reading, read_page(render_reading(reading, EngineVersion(version)).decode()))

    return run
