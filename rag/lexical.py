"""Passages -> a word index by BM25 (Robertson & Zaragoza 2009), the other half of a hybrid search."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

_WORD = re.compile(r"\w+")
_K1, _B = 1.2, 0.75


def words(text: str) -> list[str]:
    """Lower-case words of a text."""
    return _WORD.findall(text.lower())


class Lexical:
    """Postings in memory; a search touches only the passages that share a word with the question."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(words(text)) for text in texts]
        self._lengths = [sum(one.values()) for one in counts]
        self._mean = sum(self._lengths) / max(len(texts), 1) or 1.0
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, one in enumerate(counts):
            for word, count in one.items():
                self._postings[word].append((number, count))

    def search(self, question: str, top_k: int) -> list[int]:
        """Numbers of the best passages, best first; ties by number."""
        scores: dict[int, float] = defaultdict(float)
        for word in set(words(question)):
            found = self._postings.get(word, [])
            weight = math.log(1 + (len(self._lengths) - len(found) + 0.5) / (len(found) + 0.5))
            for number, count in found:
                damp = _K1 * (1 - _B + _B * self._lengths[number] / self._mean)
                scores[number] += weight * count * (_K1 + 1) / (count + damp)
        return sorted(scores, key=lambda number: (-scores[number], number))[:top_k]
