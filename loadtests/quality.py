"""A small file of questions with known answers, and what the engine said -> a share of right answers.

For sweeps over context length or precision: JSONL lines {"prompt": …, "answer": …} or {"prompt": …, "pattern": …}.
Requests take the questions in order, so record number n (modulo the file) answers question n.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from loadtests.records import RequestRecord


class QualityError(ValueError):
    """The question file cannot be used; the message names file, line and mend."""


@dataclass(frozen=True, slots=True)
class Question:
    """One prompt, and the pattern that a right answer matches (an exact answer is a pattern of itself)."""

    prompt: str
    right: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Score:
    """`ratio` right answers of those judged; None when none was."""

    judged: int
    right: int

    @property
    def ratio(self) -> float | None:
        """Right over judged."""
        return self.right / self.judged if self.judged else None


def read_questions(path: str | Path) -> list[Question]:
    """Read a question file; raises QualityError."""
    questions = []
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise QualityError(f"{path}: cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                questions.append(_question(json.loads(line)))
            except (ValueError, KeyError, TypeError, AttributeError, re.error) as error:
                wanted = 'write {"prompt": …, "answer": …} or {"prompt": …, "pattern": …}'
                raise QualityError(f"{path}:{number}: {error!r}; {wanted}") from error
    if not questions:
        raise QualityError(f"{path}: holds no question")
    return questions


def score(records: Iterable[RequestRecord], questions: list[Question]) -> Score:
    """Judge every successful record that kept its text (plan.keep_text)."""
    judged = right = 0
    for record in records:
        if record.outcome == "ok" and record.text is not None:
            judged += 1
            right += bool(questions[record.seq % len(questions)].right.search(record.text))
    return Score(judged, right)


def _question(line: dict[str, str]) -> Question:
    if ("answer" in line) == ("pattern" in line):
        raise ValueError("exactly one of answer and pattern is needed")
    if "pattern" in line:
        return Question(line["prompt"], re.compile(line["pattern"]))
    return Question(line["prompt"], re.compile(rf"\A\s*{re.escape(line['answer'].strip())}\s*\Z"))
