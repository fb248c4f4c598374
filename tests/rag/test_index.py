"""Search by meaning and by word, and the order that token vectors give."""

import numpy as np
import pytest

from rag.corpus import Passage
from rag.index import Hit, Index
from rag.lexical import Lexical

E = np.eye(4, dtype=np.float32)
PASSAGES = tuple(
    Passage(n, title, text)
    for n, (title, text) in enumerate([("", "red"), ("", "green"), ("", "blue"), ("", "blue sky")])
)
NONE = np.zeros((0, 4), np.float32)


def _index(tokens=None):
    return Index(PASSAGES, E, tokens or [NONE] * 4)


def test_the_nearest_come_first_with_their_cosine():
    """A question between the first two passages, nearer the second."""
    hits = _index().search(np.array([0.6, 0.8, 0, 0], np.float32), "", 2, hybrid=False)
    assert [hit.number for hit in hits] == [1, 0]
    assert [hit.score for hit in hits] == pytest.approx([0.8, 0.6])


def test_a_hybrid_search_finds_a_word_that_the_vector_misses():
    """The vector points at passage 0, the word `blue` stands in 2 and 3 only; by vector alone neither is found."""
    vector = E[0]
    assert 2 not in [hit.number for hit in _index().search(vector, "blue", 1, hybrid=False)]
    hits = _index().search(vector, "blue", 3, hybrid=True)
    assert {hit.number for hit in hits} >= {0, 2}
    assert {hit.number: hit.score for hit in hits}[2] == 0.0


def test_tokens_that_agree_put_a_passage_first():
    """Question tokens e0 and e1: passage 2 holds both (1.0), passage 0 holds one (0.5)."""
    index = _index([E[:1], NONE, E[:2], NONE])
    kept = index.rerank(E[:2], [Hit(0, 0.9), Hit(1, 0.8), Hit(2, 0.1)], keep=2)
    assert kept == [Hit(2, 0.1), Hit(0, 0.9)]


def test_without_token_vectors_the_order_stays():
    """An embedding server gives none."""
    assert _index().rerank(NONE, [Hit(3, 0.2), Hit(1, 0.1)], keep=1) == [Hit(3, 0.2)]


def test_unequal_parts_are_refused():
    """Four passages and three vectors cannot be one index."""
    with pytest.raises(ValueError, match="4 passages, 3 vectors"):
        Index(PASSAGES, E[:3], [NONE] * 4)


def test_rare_words_weigh_more_and_shorter_texts_win():
    """`sky` stands in one text of four; both texts with `blue` tie but for length."""
    lexical = Lexical([one.text for one in PASSAGES])
    assert lexical.search("Sky!", 5) == [3]
    assert lexical.search("blue", 5) == [2, 3]
    assert lexical.search("nothing", 5) == []
