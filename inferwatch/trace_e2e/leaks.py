"""Texts that only users, passages and answers hold -> where any of them turns up: in an API's answer or a file."""

import contextlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import urllib3

from inferwatch.stack.errors import StackError
from inferwatch.trace_e2e.client import SERVICE, Asked

MIN_CHARACTERS = 20
_PIECE_BYTES, _OVERLAP_BYTES = 4 << 20, 2048
_PROMETHEUS_PATHS = (
    "/api/v1/series?match[]=%7B__name__%3D~%22.%2B%22%7D",
    "/federate?match[]=%7B__name__%3D~%22.%2B%22%7D",
    "/api/v1/query_exemplars?query=%7B__name__%3D~%22.%2B%22%7D&start={start:.0f}&end={end:.0f}",
    "/api/v1/rules",
    "/api/v1/targets",
)


def needles(asked: Sequence[Asked], passages: Iterable[str]) -> list[str]:
    """Each question whole and its marker, a stretch of each answer, a stretch of each passage."""
    found = set()
    for one in asked:
        found |= {one.question, one.question.split()[-1], one.answer.strip()[:60]}
    found |= {passage[5:65] for passage in passages}
    return sorted(text for text in found if len(text) >= MIN_CHARACTERS or text.startswith("zqx"))


@dataclass(frozen=True)
class Search:
    """*hits*: `NEEDLE in PLACE`; *places* and *size_bytes* are what was looked through."""

    hits: list[str]
    places: int
    size_bytes: int


def search(texts: Iterable[tuple[str, bytes]], wanted: Sequence[str]) -> Search:
    """Look for each text, whether written plainly or as JSON escapes it."""
    # One after the other: over thousands of texts that is ten times as fast as one pattern of all of them.
    forms = sorted({form for text in wanted for form in (text.encode(), json.dumps(text)[1:-1].encode())})
    hits, places, size = [], set(), 0
    for place, text in texts:
        places.add(place)
        size += len(text)
        if found := next((form for form in forms if form in text), None):
            hits.append(f"{found[:60].decode(errors='replace')!r} in {place}")
    return Search(hits, len(places), size)


def prometheus_texts(url: str, start: float, end: float) -> Iterator[tuple[str, bytes]]:
    """Every series with its labels, every exemplar, the rules and targets."""
    for path in _PROMETHEUS_PATHS:
        yield f"prometheus {path.split('?')[0]}", get(url + path.format(start=start, end=end))


def get(url: str) -> bytes:
    """The body of a 200. StackError for any other answer."""
    try:
        answer = urllib3.request("GET", url, timeout=30.0, retries=False)
    except urllib3.exceptions.HTTPError as error:
        raise StackError(f"{url} does not answer: {error}") from error
    if answer.status != 200:
        raise StackError(f"{url} answered HTTP {answer.status}: {answer.data[:200]!r}")
    return answer.data


def file_texts(folders: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Every file below the folders (stores, queues), in pieces that overlap; what is preallocated and empty is not."""
    for folder in folders:
        for parent, _, names in os.walk(folder):
            for name in names:
                path = Path(parent) / name
                with contextlib.suppress(FileNotFoundError):  # a store replaces its files while we look
                    for piece in _pieces(path):
                        yield str(path.relative_to(folder.parent)), piece


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        last = b""
        while block := file.read(_PIECE_BYTES):
            if block.count(0) < len(block):
                yield last + block
            last = block[-_OVERLAP_BYTES:]


CARELESS = {
    "gen_ai.input.messages": '[{"role":"user","content":"my pin is zqxsecretpin"}]',
    "gen_ai.output.messages": '[{"role":"assistant","content":"zqxsecretanswer"}]',
    "gen_ai.prompt": "zqxsecretprompt",
    "input.value": "zqxsecretinput",
    "llm.prompts.0": "zqxsecretlist",
    "retrieval.documents.0.document.content": "zqxsecretdocument",
    "db.statement": "SELECT 'zqxsecretstatement'",
    "anything.else": "zqxsecretother",
}
"""Attributes of a careless instrumentation; each holds a secret of its own."""
CARELESS_NEEDLES = (
    *(found for value in CARELESS.values() for found in re.findall(r"zqxsecret[a-z]+", value)),
    "zqxsecretevent",
    "zqxsecretmessage",
)
CARELESS_SERVICE = f"careless-{SERVICE}"
