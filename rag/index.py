"""Passages and their vectors -> a search by meaning (HNSW) and by word (BM25), and a reranker by token vectors."""

from collections.abc import Sequence
from dataclasses import dataclass

import faiss
import numpy as np

from rag.corpus import Passage
from rag.lexical import Lexical
from rag.minilm import Array

_LINKS = 32  # HNSW's M
_EF_SEARCH = 64
_FUSION = 60  # reciprocal rank fusion's constant (Cormack et al. 2009)


@dataclass(frozen=True)
class Hit:
    """*score*: cosine of the question and the passage, whatever found it."""

    number: int
    score: float


class Index:
    """
    One embedding version's index.

    *vectors*: (passages, dimension), length 1. *tokens*: for each passage (its tokens, dimension), length 1, kept as
    16-bit floats.
    """

    def __init__(self, passages: Sequence[Passage], vectors: Array, tokens: Sequence[Array]) -> None:
        if len(passages) != len(vectors) or len(passages) != len(tokens):
            raise ValueError(
                f"{len(passages)} passages, {len(vectors)} vectors, {len(tokens)} token arrays: unequal"
            )
        self.dimension = int(vectors.shape[1])
        self._vectors = np.ascontiguousarray(vectors, np.float32)
        self._tokens = [one.astype(np.float16) for one in tokens]
        self._graph = faiss.IndexHNSWFlat(self.dimension, _LINKS, faiss.METRIC_INNER_PRODUCT)
        self._graph.hnsw.efSearch = _EF_SEARCH
        self._graph.add(self._vectors)
        self._lexical = Lexical([f"{one.title} {one.text}" for one in passages])

    def search(self, vector: Array, question: str, top_k: int, hybrid: bool) -> list[Hit]:
        """The *top_k* nearest; *hybrid* joins what shares words with the question, by reciprocal ranks."""
        _, found = self._graph.search(vector[None, :], top_k)
        near = [int(number) for number in found[0] if number >= 0]
        if hybrid:
            ranks: dict[int, float] = {}
            for ranked in (near, self._lexical.search(question, top_k)):
                for rank, number in enumerate(ranked):
                    ranks[number] = ranks.get(number, 0.0) + 1 / (_FUSION + rank)
            near = sorted(ranks, key=lambda number: (-ranks[number], number))[:top_k]
        return [Hit(number, float(self._vectors[number] @ vector)) for number in near]

    def rerank(self, question_tokens: Array, hits: Sequence[Hit], keep: int) -> list[Hit]:
        """
        The best *keep* by late interaction: each token of the question finds its nearest in the passage.

        *question_tokens*: (tokens, dimension). The hits keep their cosine as score (Khattab & Zaharia 2020: MaxSim).
        """
        if not len(question_tokens):
            return list(hits[:keep])

        def agreement(hit: Hit) -> float:
            tokens = self._tokens[hit.number].astype(np.float32)
            return float((question_tokens @ tokens.T).max(axis=1).mean()) if len(tokens) else -1.0

        return sorted(hits, key=lambda hit: (-agreement(hit), hit.number))[:keep]
