"""A JSON-lines file, or the language reference that ships with this Python -> numbered passages of bounded length."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from rag.config import ConfigError, Corpus


@dataclass(frozen=True)
class Passage:
    """*title*: of the document it is cut from; *number*: its place in the corpus, and its id."""

    number: int
    title: str
    text: str


def load(corpus: Corpus) -> tuple[Passage, ...]:
    """The passages; where there are more than wanted, every document keeps its first ones. Raises ConfigError."""
    documents = _read(corpus.file) if corpus.file else _reference()
    cut = [list(_cut(text, corpus.words)) for _, text in documents]
    found: list[tuple[str, str]] = []
    depth = 0
    while len(found) < corpus.passages and depth < max(map(len, cut), default=0):
        for (title, _), parts in zip(documents, cut, strict=True):
            if depth < len(parts) and len(found) < corpus.passages:
                found.append((title, parts[depth]))
        depth += 1
    if not found:
        raise ConfigError(f"corpus: {corpus.file} holds no text; give JSON lines with `title` and `text`")
    return tuple(Passage(number, title, text) for number, (title, text) in enumerate(found))


def digest(passages: Iterable[Passage]) -> str:
    """The same for the same passages in the same order."""
    made = sha256()
    for one in passages:
        made.update(f"{one.title}\0{one.text}\0".encode())
    return made.hexdigest()[:16]


def _reference() -> list[tuple[str, str]]:
    from pydoc_data.topics import topics

    return sorted(topics.items())


def _read(path: Path) -> list[tuple[str, str]]:
    documents = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"corpus.file: {path}: cannot be read ({error})") from error
    for number, line in enumerate(lines, start=1):
        try:
            one = json.loads(line) if line.strip() else {"title": "", "text": ""}
            documents.append((str(one["title"]), str(one["text"])))
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigError(
                f"corpus.file: {path}:{number}: no JSON object with `title` and `text` ({error!r})"
            ) from error
    return documents


def _cut(text: str, words: int) -> Iterable[str]:
    every = text.split()
    for begin in range(0, len(every), words):
        yield " ".join(every[begin : begin + words])
