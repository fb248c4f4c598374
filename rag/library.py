"""Passages and embedding versions -> an index for each, made once and kept in files, and the choice among them."""

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from rag.config import MOST_SHARE, Embedding
from rag.corpus import Passage, digest
from rag.embedder import Embedder
from rag.index import Index
from rag.minilm import Array
from rag.vectors import usable

log = logging.getLogger(__name__)
_BATCH = 32


@dataclass(frozen=True)
class Version:
    """One embedding version, ready to search."""

    config: Embedding
    embedder: Embedder
    index: Index

    @property
    def name(self) -> str:
        """As spans and metrics have it."""
        return self.config.version


class Library:
    """The versions, and which share of the questions goes to each."""

    def __init__(self, passages: Sequence[Passage], versions: Sequence[Version]) -> None:
        self.passages, self.corpus = tuple(passages), digest(passages)
        self.versions = {one.name: one for one in versions}
        self._shares = {one.name: one.config.share for one in versions}
        self._random = random.Random(11)

    @property
    def shares(self) -> dict[str, float]:
        """Relative share of each version."""
        return dict(self._shares)

    def choose(self, wanted: str | None = None) -> Version:
        """The version *wanted*, else one by share. KeyError for one that is not here."""
        if wanted is not None:
            return self.versions[wanted]
        names = list(self._shares)
        return self.versions[self._random.choices(names, [self._shares[name] for name in names])[0]]

    def share(self, shares: Mapping[str, float]) -> None:
        """Set shares, for an A/B test or a roll-back; versions left out keep theirs. ValueError when it is none."""
        after = {**self._shares, **shares}
        if unknown := set(shares) - set(self._shares):
            raise ValueError(f"{', '.join(sorted(unknown))}: no version; there are {', '.join(self._shares)}")
        # An endless one would make every later choice fail.
        numbers = [
            one
            for one in after.values()
            if isinstance(one, int | float) and not isinstance(one, bool) and 0 <= one <= MOST_SHARE
        ]
        if len(numbers) < len(after) or not sum(numbers) > 0:
            raise ValueError(f"shares are numbers from 0 to {MOST_SHARE:g}, and not all of them 0")
        self._shares = after


async def build(
    config: Embedding, embedder: Embedder, passages: Sequence[Passage], data_dir: Path, stamp: str
) -> Version:
    """
    The version's index, read from *data_dir* or made and kept there.

    *stamp*: whatever else the vectors depend on (the model's files). Raises BadVector when the model gives nonsense.
    """
    facts = (digest(passages), config.model, config.pooling, config.url or "", stamp)
    path = data_dir / f"index-{sha256(repr(facts).encode()).hexdigest()[:16]}.npz"
    kept = _read(path)
    if kept is None:
        log.info("version %s: embedding %d passages", config.version, len(passages))
        kept = await _embed(embedder, passages)
        _write(path, *kept)
    vectors, tokens = kept
    return Version(config, embedder, Index(passages, vectors, tokens))


async def _embed(embedder: Embedder, passages: Sequence[Passage]) -> tuple[Array, list[Array]]:
    vectors: list[Array] = []
    tokens: list[Array] = []
    for begin in range(0, len(passages), _BATCH):
        made = await embedder.encode([one.text for one in passages[begin : begin + _BATCH]])
        vectors += [usable(one, made.vectors.shape[1]) for one in made.vectors]
        tokens += made.tokens
    return np.stack(vectors), tokens


def _read(path: Path) -> tuple[Array, list[Array]] | None:
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as kept:
            ends = kept["ends"]
            return kept["vectors"], np.split(kept["tokens"], ends[:-1])
    except (OSError, ValueError, KeyError) as error:
        log.warning("%s: cannot be read (%s); it is made anew", path, error)
        return None


def _write(path: Path, vectors: Array, tokens: list[Array]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".tmp.npz")
    ends = np.cumsum([len(one) for one in tokens])
    np.savez(draft, vectors=vectors, tokens=np.concatenate(tokens).astype(np.float16), ends=ends)
    draft.replace(path)
