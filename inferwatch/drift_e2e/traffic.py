"""Users: texts through the tap, a search over a small index, and the client that tells of it; in threads."""

import itertools
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from inferwatch.drift_client import DriftClient
from inferwatch.drift_e2e.embedder import embed
from inferwatch.drift_e2e.plan import Plan
from inferwatch.stack.errors import StackError

WORKERS = 4
TOP_K = 5


@dataclass
class Mood:
    """What users do now; changed from phase to phase."""

    texts: Sequence[str]
    model: str
    slow: bool = False
    paused: bool = False


@dataclass
class Traffic:
    """
    Requests at the plan's rate while it runs; a context manager.

    *index* (n, d): normalised vectors of the documents that are searched. *answers* and *errors* count requests.
    """

    plan: Plan
    tap_url: str
    client: DriftClient
    index: np.ndarray
    mood: Mood
    answers: int = 0
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._turn = itertools.count()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._work, args=(n,), daemon=True) for n in range(WORKERS)]

    def __enter__(self) -> "Traffic":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def _work(self, number: int) -> None:
        every = WORKERS * self.plan.texts_per_request / self.plan.texts_per_second
        self._stop.wait(every * number / WORKERS)
        due = time.monotonic()
        while not self._stop.is_set():
            due = max(due + every, time.monotonic())
            if not self.mood.paused:
                self._request()
            self._stop.wait(max(due - time.monotonic(), 0))

    def _request(self) -> None:
        mood = self.mood
        with self._lock:
            begin = next(self._turn) * self.plan.texts_per_request
        texts = [mood.texts[(begin + at) % len(mood.texts)] for at in range(self.plan.texts_per_request)]
        try:
            vectors = np.asarray(embed(self.tap_url, mood.model, texts), np.float32)
        except StackError as error:
            if not self.mood.paused:
                self.errors.append(str(error))
            return
        self.answers += 1
        began = time.monotonic()
        time.sleep(self.plan.slow_retrieval if mood.slow else self.plan.quick_retrieval)
        if vectors.shape[1] == self.index.shape[1]:
            for text, scores in zip(texts, vectors @ self.index.T, strict=True):
                best = np.sort(scores)[-TOP_K:].tolist()
                self.client.retrieval(best, seconds=time.monotonic() - began, query_characters=len(text))
