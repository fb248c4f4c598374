"""Right answers over judged ones, and question files that make no sense."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loadtests.quality import QualityError, Score, read_questions, score


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "q.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def _said(seq: int, text: str | None, outcome: str = "ok") -> Any:
    return SimpleNamespace(seq=seq, text=text, outcome=outcome)


def test_exact_and_pattern(tmp_path: Path) -> None:
    """An exact answer may have space around it, a pattern may match anywhere; record n answers question n modulo 2."""
    lines = '{"prompt": "1+1?", "answer": "2"}\n\n{"prompt": "capital?", "pattern": "(?i)paris"}\n'
    questions = read_questions(_file(tmp_path, lines))
    records = [_said(0, " 2\n"), _said(1, "It is PARIS."), _said(2, "22"), _said(3, "Rome"), _said(4, None)]

    assert score([*records, _said(6, "2", "error")], questions) == Score(4, 2)
    assert Score(4, 2).ratio == 0.5


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


def test_missing_file() -> None:
    """A path that is not there is named."""
    with pytest.raises(QualityError, match="/none"):
        read_questions("/none")
