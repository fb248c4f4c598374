"""A token count and a share of common beginning -> prompt text, cheap enough to make thousands a second."""

import random
from collections.abc import Sequence

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
SALT_WORDS = 3  # what the salt is counted as: eight hexadecimal digits make three to six tokens


class PromptMaker:
    """Prompts of a wanted length. Two prompts share their beginning only when made with the same group.

    The unshared part starts with a salt, so an engine's prefix cache cannot hit it by chance.
    """

    def __init__(self, rng: random.Random, groups: int) -> None:
        self._rng = rng
        self._bodies, self._offsets = _book(random.Random(0))
        self._prefixes = [_book(random.Random(f"prefix {group}")) for group in range(groups)]

    def make(self, words: int, shared_words: int = 0) -> tuple[str, str]:
        """(common beginning, own part), together about *words* words; the first is "" when nothing is shared."""
        shared = min(shared_words, words)
        prefix = ""
        if shared:
            text, offsets = self._prefixes[int(self._rng.random() * len(self._prefixes))]
            prefix = _cut(text, offsets, 0, shared)
        own = words - shared
        if own <= 0:
            return prefix, ""
        salt = f"{self._rng.getrandbits(32):08x}"
        start = int(self._rng.random() * (_BOOK_WORDS // 2))
        rest = _cut(self._bodies, self._offsets, start, own - SALT_WORDS)
        return prefix, f"{salt} {rest}" if rest else salt

    def from_blocks(self, blocks: Sequence[int], words: int, block_words: int) -> str:
        """A prompt whose k-th stretch of *block_words* words depends only on the first k+1 ids of *blocks*."""
        parts = []
        left = words
        for block in blocks:
            text, offsets = self._bodies, self._offsets
            start = random.Random(block).randrange(_BOOK_WORDS // 2)
            take = min(left, block_words)
            parts.append(f"{block:x} {_cut(text, offsets, start, take - 1)}")
            left -= take
            if left <= 0:
                break
        return " ".join(parts)


def _book(rng: random.Random) -> tuple[str, list[int]]:
    """A long text and the offset of each of its words, so that any stretch of it is one slice."""
    words = rng.choices(_COMMON.split(), k=_BOOK_WORDS)
    offsets = [0]
    for word in words:
        offsets.append(offsets[-1] + len(word) + 1)
    return " ".join(words), offsets


def _cut(text: str, offsets: list[int], start: int, words: int) -> str:
    """*words* words from word *start*; a stretch longer than the book goes round."""
    parts = []
    while words > 0:
        take = min(words, _BOOK_WORDS - start)
        parts.append(text[offsets[start] : offsets[start + take] - 1])
        words -= take
        start = 0
    return " ".join(parts)
