"""Questions -> what was retrieved for them before: L1 in memory, L2 in a file that processes share, each with a limit.

A question that nothing was found for is kept too, shorter: it would else be searched again each time (negative).
"""

import json
import logging
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from rag.config import Cache, ConfigError
from rag.index import Hit
from rag.metrics import Metrics

log = logging.getLogger(__name__)

_TABLE = "CREATE TABLE IF NOT EXISTS hits (key TEXT PRIMARY KEY, hits TEXT NOT NULL, until REAL NOT NULL)"

_PATIENCE_MS = 20  # with another process that writes: the event loop waits as long


class Found(NamedTuple):
    """*level*: l1, l2, negative or miss. *hits*: empty for the last two."""

    level: str
    hits: tuple[Hit, ...] = ()


def key_of(question: str, version: str, corpus: str) -> str:
    """A digest: neither level keeps the question's text. Letter case and spaces make no other question."""
    plain = " ".join(question.casefold().split())
    return sha256(f"{corpus}\0{version}\0{plain}".encode()).hexdigest()


class TwoLevels:
    """Looked up on the event loop: both levels answer within microseconds. *clock*: Unix seconds."""

    def __init__(self, config: Cache, metrics: Metrics, clock: Callable[[], float] = time.time) -> None:
        self._config, self._lookups, self._clock = config, metrics.cache, clock
        self._memory: OrderedDict[str, tuple[tuple[Hit, ...], float]] = OrderedDict()
        self._file = _open(config.file) if config.file else None

    def get(self, key: str) -> Found:
        """Look in L1, then in L2; what L2 knew is put into L1. A file that cannot be read is a miss, and logged."""
        kept = self._memory.get(key)
        if kept is not None and kept[1] > self._clock():
            self._memory.move_to_end(key)
            return self._seen("l1", kept[0])
        self._lookups.labels("l1", "miss").inc()
        if self._file is None:
            return Found("miss")
        try:
            row = self._file.execute("SELECT hits, until FROM hits WHERE key = ?", (key,)).fetchone()
            hits = () if row is None else tuple(Hit(int(one[0]), float(one[1])) for one in json.loads(row[0]))
        except (sqlite3.Error, ValueError, TypeError, LookupError) as error:
            log.warning("L2 cannot be read: %s", error)
            row, hits = None, ()
        if row is None or row[1] <= self._clock():
            self._lookups.labels("l2", "miss").inc()
            return Found("miss")
        self._remember(key, hits, row[1])
        return self._seen("l2", hits)

    def put(self, key: str, hits: Sequence[Hit]) -> None:
        """Keep what was found, or that nothing was; a file that cannot be written is logged."""
        until = self._clock() + (self._config.seconds if hits else self._config.negative_seconds)
        self._remember(key, tuple(hits), until)
        if self._file is None:
            return
        text = json.dumps([(one.number, one.score) for one in hits])
        try:
            self._file.execute("INSERT OR REPLACE INTO hits VALUES (?, ?, ?)", (key, text, until))
            self._trim(self._file)
        except sqlite3.Error as error:
            log.warning("L2 cannot be written: %s", error)

    def clear(self) -> None:
        """Forget everything, in both levels."""
        self._memory.clear()
        if self._file is not None:
            try:
                self._file.execute("DELETE FROM hits")
            except sqlite3.Error as error:
                log.warning("L2 cannot be emptied: %s", error)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _seen(self, level: str, hits: tuple[Hit, ...]) -> Found:
        self._lookups.labels(level, "hit" if hits else "negative").inc()
        return Found(level if hits else "negative", hits)

    def _remember(self, key: str, hits: tuple[Hit, ...], until: float) -> None:
        self._memory[key] = (hits, until)
        self._memory.move_to_end(key)
        while len(self._memory) > self._config.entries:
            self._memory.popitem(last=False)

    def _trim(self, file: sqlite3.Connection) -> None:
        """Expired rows go first, then those that expire soonest."""
        (count,) = file.execute("SELECT count(*) FROM hits").fetchone()
        if count > self._config.file_entries:
            file.execute("DELETE FROM hits WHERE until <= ?", (self._clock(),))
            over = "SELECT key FROM hits ORDER BY until DESC LIMIT -1 OFFSET ?"
            file.execute(f"DELETE FROM hits WHERE key IN ({over})", (self._config.file_entries,))


def _open(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = sqlite3.connect(path, isolation_level=None, timeout=1.0)
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("PRAGMA synchronous=OFF")  # a cache: what a crash of the machine loses is searched again
        file.execute(_TABLE)
        file.execute(f"PRAGMA busy_timeout={_PATIENCE_MS}")
    except (sqlite3.Error, OSError) as error:
        raise ConfigError(
            f"cache.file: {path}: cannot be used ({error}); remove it, or name another"
        ) from error
    return file
