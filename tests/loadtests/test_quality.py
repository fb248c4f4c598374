"""Right answers over judged ones, and question files that make no sense."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loadtests.quality import QualityError, Score, last_words, read_questions, score


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "q.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def _said(
    seq: int, text: str | None, outcome: str = "ok", *, retry: bool = False, endpoint: str = "chat"
) -> Any:
    return SimpleNamespace(seq=seq, text=text, outcome=outcome, will_retry=retry, endpoint=endpoint)


def test_exact_and_pattern(tmp_path: Path) -> None:
    """An exact answer may have space around it, a pattern may match anywhere; record n answers question n modulo 2."""
    lines = '{"prompt": "1+1?", "answer": "2"}\n\n{"prompt": "capital?", "pattern": "(?i)paris"}\n'
    questions = read_questions(_file(tmp_path, lines))
    records = [_said(0, " 2\n"), _said(1, "It is PARIS."), _said(2, "22"), _said(3, "Rome"), _said(4, None)]

    assert score(records, questions) == Score(judged=4, right=2, questions=2)
    assert Score(4, 2, 2).ratio == 0.5


def test_a_failed_request_gave_no_right_answer(tmp_path: Path) -> None:
    """
    A context that is too long for the engine is refused: wrong, or cutting nothing would look best of all.

    An attempt that was repeated counts once, by its last. What this client hung up on, and what was still coming when
    the run was cut, is not known; an embedding is no answer.
    """
    questions = read_questions(
        _file(tmp_path, '{"prompt": "a", "answer": "2"}\n{"prompt": "b", "answer": "2"}\n')
    )
    records = [
        _said(0, "2"),
        _said(1, None, "error"),
        _said(2, None, "error", retry=True),
        _said(2, "2"),
        _said(4, "2", "aborted"),
        _said(5, "2", "unfinished"),
        _said(6, None, "error", endpoint="embeddings"),
    ]

    assert score(records, questions) == Score(judged=3, right=2, questions=2)


def test_a_line_ends_with_its_newline_only(tmp_path: Path) -> None:
    """JSON may hold U+2028, U+2029 and U+0085 as they are; DOS line ends are fine."""
    prompt = "one\u2028two\u2029three\u0085four"
    text = f'{{"prompt": "{prompt}", "answer": "1"}}\r\n{{"prompt": "x", "answer": "2"}}\n'

    assert [question.prompt for question in read_questions(_file(tmp_path, text))] == [prompt, "x"]


def test_nothing_judged_has_no_ratio() -> None:
    """No answer kept is unknown, not 0 % right."""
    assert score([], []).ratio is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no question"),
        ("{", ":1:"),
        ('{"prompt": "x"}', "exactly one of answer and pattern"),
        ('{"prompt": "x", "pattern": "("}', ":1:"),
        ('{"answer": "x"}', "KeyError"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, said: str) -> None:
    """The error names file and line."""
    with pytest.raises(QualityError, match=re.escape(said)):
        read_questions(_file(tmp_path, text))


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are told with the file's name."""
    path = tmp_path / "q.jsonl"
    path.write_bytes(b'{"prompt": "\xff"}\n')
    with pytest.raises(QualityError, match=r"q.jsonl.*UTF-8"):
        read_questions(path)


def test_missing_file() -> None:
    """A path that is not there is named."""
    with pytest.raises(QualityError, match="/none"):
        read_questions("/none")


def test_the_last_words_of_a_prompt() -> None:
    """The question at the end stays, and what is between the words too; more words than there are is the whole."""
    text = "Some  long context.\n\nWho\twrote it? "

    assert last_words(text, 3) == "Who\twrote it? "
    assert last_words(text, 4) == "context.\n\nWho\twrote it? "
    assert last_words(text, 6) == last_words(text, 7) == text
    assert last_words(text, 0) == ""
    assert last_words("", 5) == ""
