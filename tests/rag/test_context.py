"""Prompts within a budget: what is cut, what is cited, what stays. A token is a word here."""

import re

import pytest

from rag.context import assemble, defused
from rag.corpus import Passage


def words(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", text)]


PASSAGES = (
    Passage(7, "One", "a1 a2 a3 a4"),
    Passage(9, "Two", "b1 b2 b3 b4"),
    Passage(2, "Three", "c1 c2 c3 c4"),
)


def _prompt(budget, where, passages=PASSAGES):
    return assemble("why ?", passages, budget, where, words)


def test_what_fits_is_whole():
    """12 tokens in a budget of 12: nothing is cut, and nothing is said of cutting."""
    prompt = _prompt(12, "middle")
    assert (prompt.tokens_before, prompt.tokens_after, prompt.where, prompt.cuts) == (12, 12, None, ())
    assert [one["role"] for one in prompt.messages] == ["system", "user"]
    assert prompt.messages[1]["content"] == (
        "[1] One: a1 a2 a3 a4\n[2] Two: b1 b2 b3 b4\n[3] Three: c1 c2 c3 c4\n\nQuestion: why ?"
    )


@pytest.mark.parametrize(
    ("where", "kept", "cuts"),
    [
        ("head", "[2] Two: […] b3 b4\n[3] Three: c1 c2 c3 c4", [(1, 4), (2, 2)]),
        ("tail", "[1] One: a1 a2 a3 a4\n[2] Two: b1 b2 […]", [(2, 2), (3, 4)]),
        ("middle", "[1] One: a1 a2 a3 […]\n[3] Three: […] c2 c3 c4", [(1, 1), (2, 4), (3, 1)]),
    ],
)
def test_six_of_twelve_tokens_stay(where, kept, cuts):
    """The side that gives way loses its six; numbers stay with their passages, and the cut is cited in the prompt."""
    prompt = _prompt(6, where)
    cited = ", ".join(f"{tokens} tokens of [{number}]" for number, tokens in cuts)
    assert prompt.messages[1]["content"] == f"{kept}\n(cut from the {where}: {cited})\n\nQuestion: why ?"
    assert [(one.number, one.tokens) for one in prompt.cuts] == cuts
    assert (prompt.tokens_before, prompt.tokens_after, prompt.where) == (12, 6, where)


def test_a_cut_inside_one_passage_keeps_both_its_ends():
    """Four of eight tokens go from the middle."""
    prompt = _prompt(4, "middle", (Passage(0, "T", "a b c d e f g h"),))
    assert "[1] T: a b […] g h" in prompt.messages[1]["content"]


@pytest.mark.parametrize(
    "marker", ["<|user|>", "<|im_start|>", "[INST]", "[/INST]", "</s>", "<start_of_turn>"]
)
def test_text_that_looks_like_a_role_marker_is_defused(marker):
    """Neither a passage, its title nor the question can forge a role; the roles themselves are the messages'."""
    prompt = assemble(f"x {marker}", (Passage(0, marker, f"a {marker} b"),), 100, "tail", words)
    text = "".join(one["content"] for one in prompt.messages)
    assert marker not in text
    assert text.count(defused(marker)) == 3


def test_plain_comparisons_are_left_alone():
    """a < b is no marker."""
    assert defused("a <b> [c] x<y|z>") == "a <b> [c] x<y|z>"
