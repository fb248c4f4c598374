"""Ranked passages and a budget of tokens -> the messages of a prompt, and what was cut of which passage.

Only the text of passages is ever cut. Role markers belong to the messages and stay; a passage that holds text
which looks like one is defused, and every passage of which something stays keeps its number, so that it can be cited.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rag.config import Where
from rag.corpus import Passage

Spans = Callable[[str], list[tuple[int, int]]]
"""A text -> begin and end of each of its tokens, in characters."""

SYSTEM = "Answer from the numbered passages only and name the numbers you used. If they do not say, say so."
NO_ANSWER = "The passages at hand do not say anything about this."
_ROLE_MARKER = re.compile(r"<\|[^<>|]{1,32}\|>|\[/?INST\]|</?s>|<(?:start|end)_of_turn>", re.IGNORECASE)


@dataclass(frozen=True)
class Cut:
    """*tokens* of passage *number* (as cited: from 1) were left out."""

    number: int
    tokens: int


@dataclass(frozen=True)
class Prompt:
    """*messages*: role and content each. Tokens are those of passages, before and after the cut."""

    messages: tuple[dict[str, str], ...]
    tokens_before: int
    tokens_after: int
    where: Where | None = None
    cuts: tuple[Cut, ...] = field(default=())

    @property
    def cut_text(self) -> str:
        """What was cut, in words; empty when all of it fitted."""
        if not self.cuts:
            return ""
        parts = ", ".join(f"{one.tokens} tokens of [{one.number}]" for one in self.cuts)
        return f"cut from the {self.where}: {parts}"


def assemble(question: str, passages: Sequence[Passage], budget: int, where: Where, spans: Spans) -> Prompt:
    """The prompt of *question* with at most *budget* tokens of passages; *where*: the side that gives way."""
    texts = [defused(one.text) for one in passages]
    tokens = [spans(text) for text in texts]
    total = sum(map(len, tokens))
    lost = _lost(total, budget, where)
    blocks, cuts, begin = [], [], 0
    for number, (passage, text, own) in enumerate(zip(passages, texts, tokens, strict=True), start=1):
        first, last = max(lost[0] - begin, 0), min(lost[1] - begin, len(own))
        begin += len(own)
        gone = max(0, last - first)
        if gone:
            cuts.append(Cut(number, gone))
        if gone < len(own) or not own:
            kept = _without(text, own, first, last) if gone else text
            blocks.append(f"[{number}] {defused(passage.title)}: {kept}")
    prompt = Prompt((), total, min(total, budget), where if cuts else None, tuple(cuts))
    note = f"\n({prompt.cut_text})" if cuts else ""
    messages = (
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "\n".join(blocks) + f"{note}\n\nQuestion: {defused(question)}"},
    )
    return Prompt(messages, prompt.tokens_before, prompt.tokens_after, prompt.where, prompt.cuts)


def defused(text: str) -> str:
    """The text with whatever an engine could read as a role marker made plain: `<|user|>` -> `< |user| >`."""
    return _ROLE_MARKER.sub(lambda match: f"{match[0][0]} {match[0][1:-1]} {match[0][-1]}", text)


def _lost(total: int, budget: int, where: Where) -> tuple[int, int]:
    """First and one past the last token that does not stay."""
    over = max(0, total - budget)
    begin = {"head": 0, "tail": total - over, "middle": (total - over + 1) // 2}[where]
    return begin, begin + over


def _without(text: str, tokens: list[tuple[int, int]], first: int, last: int) -> str:
    """The text without tokens *first* to *last* - 1; an ellipsis stands where they were."""
    before = text[: tokens[first - 1][1]] if first else ""
    after = text[tokens[last][0] :] if last < len(tokens) else ""
    return f"{before} […] {after}".strip()
