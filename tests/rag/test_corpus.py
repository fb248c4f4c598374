"""Passages of a file and of the interpreter's own reference."""

import json

import pytest

from rag.config import ConfigError, Corpus
from rag.corpus import digest, load


def test_documents_are_cut_and_each_keeps_its_beginning(tmp_path):
    """25 words make passages of 10, 10 and 5; with room for three, each document's first goes before any second."""
    path = tmp_path / "c.jsonl"
    long = " ".join(f"w{n}" for n in range(25))
    path.write_text(
        f"{json.dumps({'title': 'A', 'text': long})}\n{json.dumps({'title': 'B', 'text': 'b1 b2'})}\n"
    )
    found = load(Corpus(file=path, words=10, passages=3))
    assert [(one.number, one.title, one.text.split()[0]) for one in found] == [
        (0, "A", "w0"), (1, "B", "b1"), (2, "A", "w10"),
    ]  # fmt: skip
    assert len(load(Corpus(file=path, words=10, passages=99))) == 4


def test_the_language_reference_ships_with_python():
    """No download: the topic of the with statement is among the passages."""
    found = load(Corpus(passages=200, words=60))
    assert len(found) == 200
    assert any(one.title == "with" and "context manager" in one.text for one in found)
    assert digest(found) == digest(load(Corpus(passages=200, words=60)))
    assert digest(found) != digest(found[1:])


@pytest.mark.parametrize(
    ("line", "says"), [("[]", ":1: no JSON object"), ('{"title": "x"}', ":1: no JSON"), ("", "no text")]
)
def test_a_bad_file_is_named_with_its_line(tmp_path, line, says):
    """File, line and what is wanted."""
    path = tmp_path / "c.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(ConfigError, match=says):
        load(Corpus(file=path))
