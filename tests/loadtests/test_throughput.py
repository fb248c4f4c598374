"""Tokens a second of a closed loop, counted when they came."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from loadtests.plan import closed, parse_plan
from loadtests.records import RequestRecord, from_mapping
from loadtests.run import LoadResult
from loadtests.throughput import tokens_per_second


def _record(
    sent: float, outcome: str = "ok", tokens: int | None = 8, source: str = "server"
) -> RequestRecord:
    """Four chunks, one a second, the first a second after *sent*; two tokens each."""
    values: dict[str, Any] = {field.name: None for field in dataclasses.fields(RequestRecord)}
    values |= {"sent_s": sent, "first_token_s": sent + 1, "chunks": 4, "chunk_gaps_ns": (10**9,) * 3}
    return from_mapping({**values, "outcome": outcome, "output_tokens": tokens, "tokens_source": source})


def _result(records: list[RequestRecord]) -> LoadResult:
    plan = parse_plan({"base_url": "http://h:1", "model": "m", "arrival": closed(1, 9)})
    result = LoadResult(Path("x"), plan, 0.0, 9.0, 0, False)
    result.__dict__["records"] = tuple(records)
    return result


def test_window_from_warmup_to_the_end_of_the_plan() -> None:
    """Sent at 0, 4, 8; window 2 to 9 s: chunks at 2, 3, … 9: after the first, 7 × 2 tokens in 7 s."""
    assert tokens_per_second(_result([_record(0), _record(4), _record(8)]), 2.0) == pytest.approx(2.0)


def test_failed_answers_do_not_count_and_cut_ones_do() -> None:
    """The middle answer failed: 2, 3, 4, 9 s are left, 3 × 2 tokens in 7 s; cut by the end of the run: as if whole."""
    failed = _result([_record(0), _record(4, "error"), _record(8)])
    cut = _result([_record(0), _record(4, "unfinished"), _record(8)])

    assert tokens_per_second(failed, 2.0) == pytest.approx(6 / 7)
    assert tokens_per_second(cut, 2.0) == pytest.approx(2.0)


def test_an_engine_that_hangs_is_slow_and_not_unseen() -> None:
    """Chunks at 1, 2, 3, 4 and then nothing to the end at 9: from 1 s on 3 × 2 tokens in 8 s, not 2 a second.

    One that begins late, at 5 s: all 4 chunks of 2 tokens in the 7 s from 1 to the last at 8.
    """
    assert tokens_per_second(_result([_record(0), _record(4, "unfinished", None)]), 1.0) == pytest.approx(
        0.75
    )
    assert tokens_per_second(_result([_record(0, "unfinished", None), _record(4)]), 1.0) == pytest.approx(
        8 / 7
    )


@pytest.mark.parametrize("records", [[], [_record(0, tokens=None), _record(9, tokens=None)]])
def test_unknown_is_none(records: list[RequestRecord]) -> None:
    """No request, no window or no token: no rate, not 0."""
    assert tokens_per_second(_result(records), 1.0) is None
    assert tokens_per_second(_result([_record(0)]), 9.0) is None


def test_a_guess_from_chunks_is_no_token_count() -> None:
    """No usage: one token a chunk is what the client guesses, and half of what this engine made."""
    guessed = [_record(at, tokens=4, source="estimated") for at in (0, 4)]

    assert tokens_per_second(_result(guessed), 1.0) is None
