"""An engine's label text to our label text, remembered: most lines of a scrape differ in value only.

The cache is keyed by content (the rule and the label text as the engine wrote it), so it needs no
notion of target or time, and is emptied as a whole when it reaches a bound.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock

from exporters.engine.exposition import LineError, escape, parse_labels, parse_number
from slo.names import engine as names

Labels = Mapping[bytes, bytes]

FOREIGN = b""  # what a label text of somebody else's metrics becomes: the line is passed over
_MODEL = names.LABEL_MODEL.encode()
_DP_RANK = names.LABEL_DP_RANK.encode()
_MAX_TEXT_BYTES = 8192
_ENTRY_OVERHEAD_BYTES = 200  # two bytes objects and a dict slot, rounded up


@dataclass(frozen=True)
class LabelRule:
    """Which labels of the engine's samples survive, under which names.

    `keep` is (engine's name, our name) in the order of output; `required` must be there, and `bound` must
    be a number (Prometheus refuses a whole page for one bucket bound that is none).
    `ranked`: the family belongs to one engine core, so that it carries `dp_rank`.
    """

    name: str
    keep: tuple[tuple[bytes, bytes], ...] = ()
    required: bytes | None = None
    ranked: bool = True
    bound: bytes | None = None


@dataclass(frozen=True)
class LabelReader:
    """How one engine spells model and rank. Each gets parsed labels, values escaped."""

    model: Callable[[Labels], bytes | None]
    rank: Callable[[Labels], bytes]
    foreign: Callable[[Labels], bool]


class LabelCache:
    """Rule and label text -> our label text up to and including `} `, bounded in entries and bytes.

    `aliases` maps a spelling of a model's name to the one to publish (escaped on both sides).
    """

    def __init__(
        self,
        aliases: Mapping[str, str] | None = None,
        max_entries: int = 50_000,
        max_bytes: int = 16 * 1024 * 1024,
    ) -> None:
        self._aliases = {escape(alias): escape(model) for alias, model in (aliases or {}).items()}
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._tables: dict[tuple[str, str], dict[bytes, bytes]] = {}
        self._writing = Lock()  # large pages are translated in threads
        self.entries = 0
        self.bytes = 0

    def table(self, engine: str, rule: LabelRule) -> dict[bytes, bytes]:
        """The live table of a rule, for lookups; only `resolve` writes to it."""
        return self._tables.setdefault((engine, rule.name), {})

    def resolve(self, engine: str, rule: LabelRule, reader: LabelReader, text: bytes) -> bytes:
        """Our label text for the engine's `text` (without braces), or FOREIGN; raises LineError."""
        table = self.table(engine, rule)
        known = table.get(text)
        if known is not None:
            return known
        if len(text) > _MAX_TEXT_BYTES:
            raise LineError(f"labels of more than {_MAX_TEXT_BYTES} bytes")
        made = self._make(rule, reader, parse_labels(text))
        if text:  # the quick path reads an empty text as "look closer"
            self._keep(table, text, made)
        return made

    def _keep(self, table: dict[bytes, bytes], text: bytes, made: bytes) -> None:
        cost = len(text) + len(made) + _ENTRY_OVERHEAD_BYTES
        with self._writing:
            if self.entries >= self._max_entries or self.bytes + cost > self._max_bytes:
                self._clear()
            if text not in table:
                table[text] = made
                self.entries += 1
                self.bytes += cost

    def _make(self, rule: LabelRule, reader: LabelReader, labels: Labels) -> bytes:
        if reader.foreign(labels):
            return FOREIGN
        if rule.required is not None and rule.required not in labels:
            raise LineError(f"label {rule.required.decode()} is missing")
        if rule.bound is not None:
            labels = {**labels, rule.bound: _one_spelling(labels[rule.bound])}
        parts = []
        model = reader.model(labels)
        if model is not None:
            parts.append((_MODEL, self._aliases.get(model, model)))
        if rule.ranked:
            parts.append((_DP_RANK, reader.rank(labels)))
        parts.extend((ours, labels[theirs]) for theirs, ours in rule.keep if theirs in labels)
        return b",".join(b'%b="%b"' % part for part in parts) + b"} "

    def _clear(self) -> None:
        for table in self._tables.values():
            table.clear()  # in place: a translation under way holds these tables
        self.entries = 0
        self.bytes = 0


def _one_spelling(bound: bytes) -> bytes:
    """A bucket bound as Prometheus 3 stores it: 1 as 1.0 and infinity as +Inf; raises LineError."""
    number = parse_number(bound)
    if math.isnan(number):
        raise LineError("a bucket bound that is not a number")
    if number == math.inf:
        return b"+Inf"
    return bound + b".0" if bound.isdigit() else bound
