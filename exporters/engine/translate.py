"""An engine's page to canonical families: whole or nothing, values passed through as text.

Raises ProbeError(malformed) for a page that is cut off or contradicts itself, ProbeError(too_large)
for one over the limits, ProbeError(no_engine_metrics) for one without a sample of a known engine.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from operator import methodcaller

from exporters.engine import families, histogram
from exporters.engine.adapter import Adapter, Draft, Samples
from exporters.engine.families import Family
from exporters.engine.labels import LabelCache
from exporters.engine.probe_error import ProbeError
from exporters.engine.scan import Scan, scan, settle
from exporters.engine.sourcetable import SourceTable, compile_table
from slo.names import engine as names

_MODEL = re.compile(rb'model="((?:[^"\\]|\\.)*)"')
_CORE = re.compile(rb'((?:model="(?:[^"\\]|\\.)*",)?dp_rank="(?:[^"\\]|\\.)*")')
_MODEL_START = b'model="'
_HAS_MODEL = methodcaller("startswith", _MODEL_START)
_OPENMETRICS_END = b"# EOF"
_LINES_A_SERIES = 10  # a page may have this many lines for each series that a module lets through


@dataclass(frozen=True)
class Block:
    """One family of the answer: its samples by suffix ("" for counters and gauges)."""

    family: Family
    parts: tuple[tuple[str, Samples], ...]


@dataclass(frozen=True)
class Reading:
    """What a page said: families in the order of the adapter, and what was left out."""

    adapter: Adapter
    blocks: tuple[Block, ...]
    model: bytes | None  # escaped; the only model served, else None
    series: int
    parse_errors: int


def spellings(body: bytes, adapter: Adapter) -> Iterator[str]:
    """The adapter's prefixes that sample lines of the page start with, likeliest first."""
    for prefix in adapter.prefixes:
        if body.startswith(prefix.encode()) or b"\n" + prefix.encode() in body:
            yield prefix


def translate(
    body: bytes, adapter: Adapter, cache: LabelCache, version: str, max_series: int, openmetrics: bool = False
) -> Reading:
    """Read a whole page of `adapter`'s engine. `version` is the engine's, or "unknown"."""
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n")
    lines = body.split(b"\n")
    if len(lines) > max_series * _LINES_A_SERIES:
        raise ProbeError(names.REASON_TOO_LARGE, f"{len(lines)} lines for max_series {max_series}")
    for prefix in spellings(body, adapter):
        table = compile_table(adapter, prefix)
        found = scan(lines, table, cache)
        if any(
            samples for samples, slot in zip(found.samples, table.slots, strict=True) if slot.source.prefixed
        ):
            _check_end(lines, openmetrics)
            settle(found, table)
            _check_copies(found, table, lines)
            return _reading(found, table, version, max_series)
    raise ProbeError(names.REASON_NO_ENGINE_METRICS, f"no sample of {adapter.name} in {len(body)} bytes")


def _check_end(lines: list[bytes], openmetrics: bool) -> None:
    last = next((line for line in reversed(lines) if line), b"")
    if last == _OPENMETRICS_END:
        return
    if openmetrics or lines[-1]:
        shown = lines[-1][-60:].decode(errors="replace")
        raise ProbeError(names.REASON_MALFORMED, f"the page is cut off: it ends in {shown!r}")


def _check_copies(found: Scan, table: SourceTable, lines: list[bytes]) -> None:
    """Copies that differ in a label are added up; the same series written twice is a contradiction."""
    for at in {at for at, _, _ in found.copies}:
        start = table.slots[at].sample.encode() + b"{"
        seen: set[bytes] = set()
        for line in lines:
            if line.startswith(start):
                text = line.rpartition(b"} ")[0]
                if text in seen:
                    raise ProbeError(
                        names.REASON_MALFORMED, f"{table.slots[at].sample} holds one series twice"
                    )
                seen.add(text)


def _reading(found: Scan, table: SourceTable, version: str, max_series: int) -> Reading:
    adapter = table.adapter
    infos = dict(zip(adapter.infos, found.infos, strict=True))
    draft = Draft(_chosen(found, table), infos, version, parse_errors=found.parse_errors)
    adapter.derive(draft)
    cores, model = _who(found, table)
    made = [
        (m.family, draft.chosen[m.family.name][1]) for m in adapter.metrics if m.family.name in draft.chosen
    ]
    made += [(family, {"": samples}) for family, samples in draft.extra]
    made.append((families.UP, {"": dict.fromkeys(cores, b"1")}))
    blocks = [_block(family, parts, model) for family, parts in made]
    series = sum(len(samples) for block in blocks for _, samples in block.parts)
    if series > max_series:
        raise ProbeError(names.REASON_TOO_LARGE, f"{series} series, max_series is {max_series}")
    return Reading(adapter, tuple(blocks), model, series, draft.parse_errors)


def _chosen(found: Scan, table: SourceTable) -> dict[str, tuple[str, dict[str, Samples]]]:
    """For each canonical family the first source with samples; a histogram with a hole is left out."""
    chosen: dict[str, tuple[str, dict[str, Samples]]] = {}
    holes = {
        (slot.metric.family.name, slot.source.name)
        for at, slot in enumerate(table.slots)
        if at in found.damaged and slot.suffix
    }
    rules: dict[str, str] = {}
    for at, slot in enumerate(table.slots):
        name, samples = slot.metric.family.name, found.samples[at]
        if not samples:
            continue
        source, parts = chosen.setdefault(name, (slot.source.name, {}))
        rule = rules.setdefault(name, slot.source.rule.name)
        if source == slot.source.name:
            parts[slot.suffix] = samples
        elif slot.rule.ranked and rule == slot.source.rule.name and (name, slot.source.name) not in holes:
            parts[slot.suffix] = _filled(parts.get(slot.suffix, {}), samples)
    for name, source in holes:
        if name in chosen and chosen[name][0] == source:
            del chosen[name]
    for name, (source, parts) in chosen.items():
        if "" not in parts:
            wrong = histogram.fault(parts.get("_bucket", {}), parts.get("_sum", {}), parts.get("_count", {}))
            if wrong is not None:
                raise ProbeError(names.REASON_MALFORMED, f"{table.prefix}{source} ({name}): {wrong}")
    return chosen


def _filled(first: Samples, other: Samples) -> Samples:
    """`first`, and from another source the engine cores that it lacks: a page of Ray may hold two versions' names."""
    known = {core[1] for text in first if (core := _CORE.match(text))}
    more = {text: v for text, v in other.items() if (core := _CORE.match(text)) and core[1] not in known}
    return first | more if more else first


def _who(found: Scan, table: SourceTable) -> tuple[list[bytes], bytes | None]:
    """The label texts of the engine cores seen, and the model if there is exactly one."""
    texts: set[bytes] = set()
    for at in table.cores:
        texts.update(found.samples[at])
    if not texts:  # a page with nothing but families that carry labels of their own
        for samples in found.samples:
            texts.update(samples)
    cores = {core[1] for text in texts if (core := _CORE.match(text))}
    models = {model[1] for text in texts if (model := _MODEL.match(text))}
    return [core + b"} " for core in sorted(cores)], models.pop() if len(models) == 1 else None


def _block(family: Family, parts: dict[str, Samples], model: bytes | None) -> Block:
    """Name the only model on samples that the engine left without one (its HTTP counters, its infos)."""
    # a histogram that passed its check has the same series in its buckets as in its counts
    if model is None or all(map(_HAS_MODEL, parts.get("_count") or parts[""])):
        return Block(family, tuple(parts.items()))
    return Block(family, tuple((suffix, _named(samples, model)) for suffix, samples in parts.items()))


def _named(samples: Samples, model: bytes) -> Samples:
    named: Samples = {}
    for labels, value in samples.items():
        if not labels.startswith(_MODEL_START):
            comma = b"" if labels.startswith(b"}") else b","
            labels = b'%b%b"%b%b' % (_MODEL_START, model, comma, labels)
        named[labels] = value
    return named
