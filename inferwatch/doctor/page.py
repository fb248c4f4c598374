"""The text of an engine's /metrics -> its samples by family, as they stand; nothing is renamed here."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

PREFIX = "vllm:"


@dataclass(frozen=True)
class Page:
    """One scrape: sample name -> (labels, value) in the order of the page."""

    samples: Mapping[str, tuple[tuple[Mapping[str, str], float], ...]]

    def __contains__(self, name: str) -> bool:
        return name in self.samples

    def of(self, *names: str) -> tuple[tuple[Mapping[str, str], float], ...]:
        """Samples of the first of *names* that the page has."""
        return next((self.samples[name] for name in names if name in self.samples), ())

    def total(self, *names: str) -> float | None:
        """The sum over all series, None where the page has no such family."""
        found = self.of(*names)
        return sum(value for _, value in found) if found else None

    def label(self, name: str, label: str) -> str | None:
        """A label of the family's first series."""
        found = self.of(name)
        return found[0][0].get(label) if found else None


@dataclass(frozen=True)
class Histogram:
    """Buckets added up over all series: (upper bound in the family's unit, cumulative count)."""

    buckets: tuple[tuple[float, float], ...]
    sum: float

    @property
    def count(self) -> float:
        """All observations."""
        return self.buckets[-1][1] if self.buckets else 0.0

    @property
    def mean(self) -> float | None:
        """None where nothing was observed."""
        return self.sum / self.count if self.count else None

    def at_most(self, quantile: float) -> float | None:
        """The upper bound of the bucket that holds the quantile; infinity where it is off the scale."""
        wanted = quantile * self.count
        return next((bound for bound, seen in self.buckets if seen >= wanted), None) if self.count else None


def parse(text: str) -> Page:
    """Read a page; ValueError when it is not in the text format."""
    samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    return Page({name: tuple(found) for name, found in samples.items()})


def histogram(page: Page, *names: str) -> Histogram | None:
    """The first of *names* that the page has, None where it has none."""
    for name in names:
        if found := dict(_cumulative(page, name)):
            return Histogram(tuple(sorted(found.items())), page.total(f"{name}_sum") or 0.0)
    return None


def _cumulative(page: Page, name: str) -> Iterator[tuple[float, float]]:
    totals: dict[float, float] = {}
    for labels, value in page.of(f"{name}_bucket"):
        bound = math.inf if labels["le"] in ("+Inf", "inf") else float(labels["le"])
        totals[bound] = totals.get(bound, 0.0) + value
    yield from totals.items()
