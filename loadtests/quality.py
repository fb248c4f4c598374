"""A small file of questions with known answers, and what the engine said -> a share of right answers.

For sweeps over context length or precision: JSONL lines {"prompt": …, "answer": …} or {"prompt": …, "pattern": …}.
Requests take the questions in order, so record number n (modulo the file) answers question n.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
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
    """`ratio` right answers of those judged; None when none was. `questions`: how many different ones were judged."""

    judged: int
    right: int
    questions: int

    @property
    def ratio(self) -> float | None:
        """Right over judged."""
        return self.right / self.judged if self.judged else None


def read_questions(path: str | Path) -> list[Question]:
    """Read a question file; raises QualityError."""
    questions = []
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise QualityError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise QualityError(f"{path}: is not UTF-8: {error.reason} at byte {error.start}") from error
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines(): JSON may hold U+2028 as it is
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
    """Judge the answers of a run with plan.keep_text; a request that failed for good gave a wrong one.

    Not judged, because nobody knows: what this client hung up on, and what was still coming when the run was cut.
    """
    right: dict[int, int] = {}
    judged = 0
    for record in records:
        if record.will_retry or record.endpoint == "embeddings":
            continue
        answered = record.outcome == "ok" and record.text is not None
        if answered or record.outcome == "error":
            number = record.seq % len(questions)
            judged += 1
            right[number] = right.get(number, 0) + (answered and _is_right(record.text, questions[number]))
    return Score(judged, sum(right.values()), len(right))


@lru_cache(maxsize=4096)
def last_words(text: str, count: int) -> str:
    """*text* from its *count*-th word from the end on; words are what white space parts."""
    starts = [word.start() for word in re.finditer(r"\S+", text)]
    return text if count >= len(starts) else text[starts[-count] :] if count > 0 else ""


def _is_right(text: str | None, question: Question) -> bool:
    return text is not None and question.right.search(text) is not None


def _question(line: dict[str, str]) -> Question:
    if ("answer" in line) == ("pattern" in line):
        raise ValueError("exactly one of answer and pattern is needed")
    if "pattern" in line:
        return Question(line["prompt"], re.compile(line["pattern"]))
    return Question(line["prompt"], re.compile(rf"\A\s*{re.escape(line['answer'].strip())}\s*\Z"))
