"""The loop over a page's lines: each sample to its slot, one dictionary look-up for the labels.

Everything unusual (a label text not seen before, a timestamp, an exemplar, a copy of a series) leaves
the quick path; what comes out is checked by `settle` before anybody uses it.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import methodcaller

from exporters.engine.adapter import Samples
from exporters.engine.exposition import LineError, check_utf8, parse_number, split_sample
from exporters.engine.labels import FOREIGN, LabelCache
from exporters.engine.probe_error import ProbeError
from exporters.engine.sourcetable import Slot, SourceTable
from slo.names import engine as names

MAX_PARSE_ERRORS = 10  # lines that may be left out before the page as a whole is not trusted
_MAX_LINE_BYTES = 16 * 1024
_PLAIN_NUMBER = b"0123456789.e+-"
_SHOWN = 120


@dataclass
class Scan:
    """Samples by slot, the copies to merge, and the slots that lost a line."""

    samples: list[Samples]
    infos: list[dict[bytes, bytes]]
    copies: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    damaged: set[int] = field(default_factory=set)
    parse_errors: int = 0

    def error(self, slot: int, line: bytes, error: LineError) -> None:
        """Count a line that is left out; raises ProbeError once there are too many."""
        self.parse_errors += 1
        self.damaged.add(slot)
        if self.parse_errors > MAX_PARSE_ERRORS:
            shown = line[:_SHOWN].decode(errors="replace")
            raise ProbeError(
                names.REASON_MALFORMED,
                f"more than {MAX_PARSE_ERRORS} lines cannot be read; the last: {error}: {shown!r}",
            )


def scan(lines: Iterable[bytes], table: SourceTable, cache: LabelCache) -> Scan:
    """Sort the page's samples into slots. Values are still text, unchecked."""
    count = len(table.slots)
    result = Scan([{} for _ in table.slots], [{} for _ in table.adapter.infos])
    samples = result.samples
    tables = [cache.table(table.adapter.name, slot.rule) for slot in table.slots]
    index = table.index.get
    for line in filter(methodcaller("startswith", table.starts), lines):
        name, brace, rest = line.partition(b"{")
        at = index(name)
        if at is None:
            at = None if brace else index(line.partition(b" ")[0])
            if at is None:
                continue
        elif at < count:
            text, _, value = rest.rpartition(b"} ")
            labels = tables[at].get(text)
            if labels:
                if labels in samples[at]:
                    result.copies.append((at, labels, value))
                else:
                    samples[at][labels] = value
                continue
            if labels == FOREIGN:
                continue
        _look_closer(line, at, table, cache, result)
    return result


def _look_closer(line: bytes, at: int, table: SourceTable, cache: LabelCache, result: Scan) -> None:
    try:
        if len(line) > _MAX_LINE_BYTES:
            raise LineError(f"a line of more than {_MAX_LINE_BYTES} bytes")
        _, text, value = split_sample(line)
        if at >= len(table.slots):
            parse_number(value)
            check_utf8(text)
            result.infos[at - len(table.slots)][text] = value
            return
        labels = cache.resolve(table.adapter.name, table.slots[at].rule, table.adapter.reader, text)
    except LineError as error:
        result.error(at, line, error)
        return
    if labels == FOREIGN:
        return
    if labels in result.samples[at]:
        result.copies.append((at, labels, value))
    else:
        result.samples[at][labels] = value


def settle(result: Scan, table: SourceTable) -> None:
    """Check every value, leave out gauges that say nothing, merge copies; raises ProbeError."""
    if not _all_plain(result.samples):
        for at, slot in enumerate(table.slots):
            if result.samples[at]:
                _check_values(result, at, slot)
    for at, labels, text in result.copies:
        _merge(result, at, table.slots[at], labels, text)


def _all_plain(samples: list[Samples]) -> bool:
    """Whether every value is a finite number of the usual spelling, none negative: nothing to mend."""
    values = [value for slot in samples for value in slot.values()]
    if b"".join(values).translate(None, _PLAIN_NUMBER):
        return False
    try:
        return not values or (min(numbers := list(map(float, values))) >= 0 and max(numbers) < math.inf)
    except ValueError:
        return False


def _check_values(result: Scan, at: int, slot: Slot) -> None:
    samples = result.samples[at] = dict(_readable(result, at, slot, result.samples[at]))
    if slot.cumulative and any(float(value) < 0 for value in samples.values()):
        raise ProbeError(names.REASON_MALFORMED, f"{slot.sample} holds a negative count")


def _readable(result: Scan, at: int, slot: Slot, samples: Samples) -> Iterable[tuple[bytes, bytes]]:
    for labels, text in samples.items():
        try:
            value = _value(slot, text)
        except LineError as error:
            result.error(at, labels + text, error)
            continue
        if value is not None:
            yield labels, value


def _value(slot: Slot, text: bytes) -> bytes | None:
    """The value text without what may follow it; None where a gauge says NaN or infinity."""
    value = split_sample(b"x " + text)[2]
    if math.isfinite(parse_number(value)):
        return value
    if slot.metric.family.kind == "gauge":
        return None
    raise LineError("a count or sum that is not finite")


def _merge(result: Scan, at: int, slot: Slot, labels: bytes, text: bytes) -> None:
    try:
        value = _value(slot, text)
    except LineError as error:
        result.error(at, labels + text, error)
        return
    samples = result.samples[at]
    before = samples.get(labels)
    if value is None:
        return
    if before is None:
        samples[labels] = value
        return
    if slot.cumulative and float(value) < 0:
        raise ProbeError(names.REASON_MALFORMED, f"{slot.sample} holds a negative count")
    if slot.add:
        samples[labels] = b"%r" % (float(before) + float(value))
    elif float(value) > float(before):
        samples[labels] = value
