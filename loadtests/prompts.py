"""A token count and a share of common beginning -> prompt text, cheap enough to make thousands a second."""

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

# Short common words: about one token each in the usual vocabularies. The record keeps the server's own count.
_COMMON = """
time year people way day man thing woman life child world school state family student group country
problem hand part place case week company system program question work government number night point
home water room mother area money story fact month lot right study book eye job word business issue
side kind head house service friend father power hour game line end member law car city community
name president team minute idea kid body information back parent face others level office door health
person art war history party result change morning reason research girl guy moment air teacher force
education foot boy age policy music market sense nation plan college interest death experience effect
use class control field development role effort rate heart drug show leader light voice wife police
mind price report decision son view relationship town road arm difference value building action season
society tax director position player record paper space ground form event official matter center couple
site project activity star table need court oil situation cost industry figure street image phone data
picture practice piece land product doctor wall patient worker news test movie north love step morning
"""
_BOOK_WORDS = 16_384
TAG_WORDS = 3  # what a tag is counted as: eight hexadecimal digits make three to six tokens


class _Text(NamedTuple):
    """Where a text begins: with a tag that no other text has, then in the book from a word on."""

    tag: str
    start: int

    @classmethod
    def draw(cls, rng: random.Random) -> "_Text":
        return cls(f"{rng.getrandbits(32):08x}", int(rng.random() * (_BOOK_WORDS // 2)))


class PromptMaker:
    """Prompts of a wanted length for the run named *run*.

    Two prompts share their beginning only when made for the same run with the same group (or the same blocks), in
    whichever worker. The unshared part, too, starts with a tag drawn for the run, so that an engine's prefix cache
    knows nothing of a run before its first request, whatever it answered earlier.
    """

    def __init__(self, run: str, worker: int, groups: int) -> None:
        self._run = run
        self._rng = random.Random(f"{run}/{worker}/prompts")
        self._book, self._offsets = _book(random.Random(0))
        prefixes = random.Random(f"{run}/prefixes")
        self._prefixes = [_Text.draw(prefixes) for _ in range(groups)]

    def make(self, words: int, shared_words: int = 0, group: int = 0) -> tuple[str, str]:
        """(beginning common to *group*, own part), together about *words* words; each is "" when it has none."""
        shared = min(shared_words, words)
        return self._cut(self._prefixes[group], shared), self._cut(_Text.draw(self._rng), words - shared)

    def from_blocks(self, blocks: Sequence[int], words: int, block_words: int) -> str:
        """A prompt whose k-th stretch of *block_words* words depends only on the k-th id of *blocks* and the run."""
        parts = []
        for block in blocks[: math.ceil(words / block_words)]:
            text = _Text.draw(random.Random(f"{self._run}/block {block}"))
            parts.append(self._cut(text, min(words, block_words)))
            words -= block_words
        return " ".join(parts)

    def _cut(self, text: _Text, words: int) -> str:
        """*words* words of *text*, its tag counted as `TAG_WORDS`; what is longer than the book goes round."""
        if words <= 0:
            return ""
        parts, start, left = [text.tag], text.start, words - TAG_WORDS
        while left > 0:
            take = min(left, _BOOK_WORDS - start)
            parts.append(self._book[self._offsets[start] : self._offsets[start + take] - 1])
            left -= take
            start = 0
        return " ".join(parts)


def _book(rng: random.Random) -> tuple[str, list[int]]:
    """A long text and the offset of each of its words, so that any stretch of it is one slice."""
    words = rng.choices(_COMMON.split(), k=_BOOK_WORDS)
    offsets = [0]
    for word in words:
        offsets.append(offsets[-1] + len(word) + 1)
    return " ".join(words), offsets
