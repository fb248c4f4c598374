"""An adapter's metrics under one prefix, compiled: sample name -> slot, as the scanning loop needs it."""

from dataclasses import dataclass
from functools import cache

from exporters.engine.adapter import HISTOGRAM_SUFFIXES, Adapter, Metric, Source, Suffix
from exporters.engine.labels import LabelRule

_LE = b"le"


@dataclass(frozen=True)
class Slot:
    """Where samples of one name go. `cumulative`: a count, so never negative, NaN or infinite."""

    sample: str
    metric: Metric
    source: Source
    suffix: Suffix
    rule: LabelRule
    cumulative: bool
    add: bool


@dataclass(frozen=True)
class SourceTable:
    """Slots in the order of the adapter's metrics; infos follow them in the index.

    `cores` are the slots whose labels are just model and rank: they tell which engine cores there are.
    `starts`: a line that starts with none of these is none of ours.
    """

    adapter: Adapter
    prefix: str
    slots: tuple[Slot, ...]
    index: dict[bytes, int]
    cores: tuple[int, ...]
    starts: tuple[bytes, ...]


def _bucket_rule(rule: LabelRule) -> LabelRule:
    return LabelRule(f"{rule.name}+le", (*rule.keep, (_LE, _LE)), _LE, rule.ranked, _LE)


def _slots(prefix: str, metric: Metric, source: Source) -> list[Slot]:
    stem = prefix + source.name if source.prefixed else source.name
    if metric.family.kind != "histogram":
        counter = metric.family.kind == "counter"
        return [Slot(stem, metric, source, "", source.rule, counter, counter or source.add)]
    made = []
    for suffix in HISTOGRAM_SUFFIXES:
        rule = _bucket_rule(source.rule) if suffix == "_bucket" else source.rule
        made.append(Slot(stem + suffix, metric, source, suffix, rule, suffix != "_sum", True))
    return made


@cache
def compile_table(adapter: Adapter, prefix: str) -> SourceTable:
    """The table of an adapter under one of its prefixes; names of its infos follow the slots."""
    slots = tuple(
        slot
        for metric in adapter.metrics
        for source in metric.sources
        for slot in _slots(prefix, metric, source)
    )
    index = {slot.sample.encode(): at for at, slot in enumerate(slots)}
    if len(index) != len(slots):
        raise ValueError(f"adapter {adapter.name}: two sources read one name; keep one of them")
    for at, info in enumerate(adapter.infos, start=len(slots)):
        index[(prefix + info).encode()] = at
    cores = tuple(at for at, slot in enumerate(slots) if slot.rule.ranked and not slot.rule.keep)
    bare = {slot.sample.encode() for slot in slots if not slot.source.prefixed}
    return SourceTable(adapter, prefix, slots, index, cores, (prefix.encode(), *sorted(bare)))
