"""Batches from every source -> one bounded window a stream (model, version, tenant), and its last verdict."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from exporters.drift.judge import State, Verdict, compatible, judge
from exporters.drift.profile import Profile
from exporters.drift.reservoir import Reservoir
from exporters.drift.vectors import Batch, Checked, Floats, check
from slo.names import drift as names
from slo.signals import Drift

# So many vectors of another dimension in a row, and none of the known one: the stream has changed.
DIMENSION_CHANGED = 16
MAX_NAME_CHARACTERS = 128

log = logging.getLogger(__name__)

_NONE: Counter[str] = Counter()


@dataclass(frozen=True)
class Limits:
    """What one exporter holds at most; *vector_bytes* over all streams."""

    streams: int = 32
    tenants: int = 16
    vector_bytes: int = 512 * 1024 * 1024


@dataclass(frozen=True)
class Key:
    """Whose vectors; what a source does not say is an empty string."""

    model: str
    version: str
    tenant: str


@dataclass
class Stream:
    """One key's window and counts; times are seconds of the registry's clock."""

    reservoir: Reservoir
    last: float
    accepted: Counter[str] = field(default_factory=Counter)
    rejected: Counter[tuple[str, str]] = field(default_factory=Counter)
    strange: tuple[int, int] = (0, 0)
    verdict: Verdict | None = None
    evaluated: float | None = None


def label(text: str) -> str:
    """A name as a label can carry it: not longer than the limit, and no half of a surrogate pair, which no page can."""
    return text[:MAX_NAME_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


class Tenants:
    """The first *limit* tenants keep their names until the exporter restarts; all further ones are `other`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def name(self, tenant: str) -> str:
        """The label of a tenant; "" stays "", which stands for none."""
        tenant = label(tenant)
        if not tenant or tenant in self._known:
            return tenant
        if len(self._known) >= self._limit:
            return names.OTHER
        self._known.add(tenant)
        return tenant


class Streams:
    """All streams of one exporter. *clock* gives seconds that do not go back."""

    def __init__(
        self,
        drift: Drift,
        profiles: Mapping[str, Profile],
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
        seed: int = 7,
    ) -> None:
        self.drift, self.profiles, self.limits, self.clock = drift, profiles, limits, clock
        self.streams: dict[Key, Stream] = {}
        self.dropped: Counter[str] = Counter()
        self.unheard: Counter[tuple[str, str]] = Counter()
        self.evaluation_seconds: float | None = None
        self.tenants = Tenants(limits.tenants)
        self._seed = seed

    def offer(self, batch: Batch, source: str, refused: Counter[str] = _NONE) -> tuple[int, Counter[str]]:
        """
        Take a batch from *source*; returns how many vectors were accepted, and refusals by reason.

        *refused*: what was already sorted out before.
        """
        now = self.clock()
        key = Key(label(batch.model), label(batch.version), self.tenants.name(batch.tenant))
        stream = self.streams.get(key)
        wanted = stream.reservoir.dimension if stream else self._dimension(key)
        checked = check(batch.vectors, wanted)
        if stream is None and not len(checked.vectors) and checked.rejected["dimension"]:
            checked = check(batch.vectors)  # nothing is as the reference wants: a stream of its own
        if stream is not None and not len(checked.vectors) and checked.rejected:
            checked = self._strange(stream, batch.vectors, checked)
        elif stream is not None:
            stream.strange = (0, 0)
        if stream is None:
            stream = self._new(key, checked.vectors, now)
        rejected = checked.rejected + refused
        counts = self.unheard if stream is None else stream.rejected
        for reason, count in rejected.items():
            counts[source, reason] += count
        if stream is None or not len(checked.vectors) or not self._room(stream, checked.vectors):
            return 0, rejected
        stream.reservoir.add(checked.vectors, now)
        stream.accepted[source] += len(checked.vectors)
        stream.last = now
        return len(checked.vectors), rejected

    def _dimension(self, key: Key) -> int | None:
        return next((one.dimension for one in self.profiles.values() if one.model == key.model), None)

    def _new(self, key: Key, vectors: Floats, now: float) -> Stream | None:
        if not len(vectors):
            return None
        if len(self.streams) >= self.limits.streams:
            self.dropped["streams"] += len(vectors)
            return None
        self.streams[key] = Stream(self._reservoir(vectors.shape[1]), now)
        return self.streams[key]

    def _reservoir(self, dimension: int) -> Reservoir:
        self._seed += 1
        drift = self.drift
        return Reservoir(dimension, drift.sample_size, drift.window, drift.slices, self._seed)

    def _strange(self, stream: Stream, vectors: object, refused: Checked) -> Checked:
        """A batch without one usable vector: after enough of one other dimension the stream begins anew."""
        own = check(vectors)
        if not len(own.vectors):
            return refused
        dimension = own.vectors.shape[1]
        count = len(own.vectors) + (stream.strange[1] if stream.strange[0] == dimension else 0)
        stream.strange = (dimension, count)
        if count < DIMENSION_CHANGED:
            return refused
        stream.reservoir, stream.strange = self._reservoir(dimension), (0, 0)
        return own

    def _room(self, stream: Stream, vectors: Floats) -> bool:
        if self.held_bytes + vectors.nbytes <= self.limits.vector_bytes:
            return True
        self.dropped["memory"] += len(vectors)
        return False

    @property
    def held_bytes(self) -> int:
        """Memory of all vectors that are held."""
        return sum(stream.reservoir.held_bytes for stream in self.streams.values())

    def window(self, key: Key) -> Floats | None:
        """The present sample of a stream; None when there is no such stream."""
        stream = self.streams.get(key)
        return stream.reservoir.sample(self.clock()) if stream else None

    def expire(self) -> None:
        """Forget what left the window, and streams of which nothing is left."""
        now = self.clock()
        for key, stream in list(self.streams.items()):
            if now - stream.last > self.drift.window:
                del self.streams[key]
            else:
                stream.reservoir.expire(now)

    def evaluate(self, key: Key) -> None:
        """Judge one stream now."""
        if (asked := self._ask(key)) is not None:
            self._settle(key, judge(*asked) if not isinstance(asked, Verdict) else asked)

    async def run(self) -> None:
        """Judge every stream every `drift.every` seconds, beside the event loop, until cancelled."""
        while True:
            begun = self.clock()
            self.expire()
            for key in list(self.streams):
                asked = self._ask(key)
                if asked is None:
                    continue
                verdict = asked if isinstance(asked, Verdict) else await asyncio.to_thread(judge, *asked)
                self._settle(key, verdict)
            self.evaluation_seconds = self.clock() - begun
            await asyncio.sleep(max(self.drift.every - self.evaluation_seconds, 0.1))

    def _ask(self, key: Key) -> tuple[Profile, Floats, Drift, State | None] | Verdict | None:
        stream = self.streams.get(key)
        if stream is None:
            return None
        found = compatible(self.profiles, key.model, key.version, stream.reservoir.dimension)
        if isinstance(found, Verdict):
            return found
        before = stream.verdict.state if stream.verdict else None
        return found, stream.reservoir.sample(self.clock()), self.drift, before

    def _settle(self, key: Key, verdict: Verdict) -> None:
        if (stream := self.streams.get(key)) is None:
            return
        if stream.verdict is None or stream.verdict.state != verdict.state:
            log.info("%s: %s %s", key, verdict.state, verdict.detail)
        stream.verdict, stream.evaluated = verdict, time.time()
