"""What an engine's adapter states: its spellings, where each canonical family comes from, its paths."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from exporters.engine.families import Family
from exporters.engine.labels import LabelReader, LabelRule

# Name, labels up to `} `, value: what a family's samples are kept in. Bytes go through unchanged.
Samples = dict[bytes, bytes]


@dataclass(frozen=True)
class Source:
    """One spelling of a family in the engine, without the engine's prefix (`prefixed`).

    Samples that become one series (process copies, HTTP methods) are added up, but for gauges, where
    the largest is taken unless `add` says that they are parts of one number.
    """

    name: str
    rule: LabelRule
    prefixed: bool = True
    add: bool = False


@dataclass(frozen=True)
class Metric:
    """A canonical family and its sources, best first: the first one with samples is used, alone."""

    family: Family
    sources: tuple[Source, ...]


@dataclass
class Draft:
    """A translation under way, handed to the adapter's `derive`.

    `chosen` is family name -> (source name, its samples by suffix); `info` is raw label text -> value
    for each of the adapter's info families; `extra` collects families made by `derive`.
    """

    chosen: dict[str, tuple[str, dict[str, Samples]]]
    info: dict[str, dict[bytes, bytes]]
    version: str
    extra: list[tuple[Family, Samples]] = field(default_factory=list)
    parse_errors: int = 0


@dataclass(frozen=True)
class Adapter:
    """One engine. `version_path` is asked for JSON with a `version` unless `versionless` spelling is seen.

    `prefixes` are the spellings of the engine's names, likeliest first; `derive` does what a table
    cannot: read infos, drop or convert what a version counts otherwise.
    """

    name: str
    prefixes: tuple[str, ...]
    metrics: tuple[Metric, ...]
    infos: tuple[str, ...]
    reader: LabelReader
    derive: Callable[[Draft], None]
    metrics_path: str = "/metrics"
    version_path: str | None = None
    versionless: tuple[str, ...] = ()


Suffix = Literal["", "_bucket", "_sum", "_count"]
HISTOGRAM_SUFFIXES: tuple[Suffix, ...] = ("_bucket", "_sum", "_count")
