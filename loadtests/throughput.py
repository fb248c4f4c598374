"""Records of a closed loop -> output tokens a second while it was in full swing."""

from collections.abc import Iterator
from itertools import pairwise

from loadtests.records import RequestRecord
from loadtests.run import LoadResult


def tokens_per_second(result: LoadResult, warmup_s: float) -> float | None:
    """Output tokens a second between *warmup_s* after the first request and the end of the plan.

    Tokens are counted when their chunk came, not when their request ended, so that answers cut by the edges of
    the window count for the part inside; each chunk of an answer stands for the same number of tokens. The time
    goes from the first chunk in the window to the last, which an engine's step rhythm cannot blur; a silence
    before or after them that is longer than any between them is the engine's, and counts. Answers that failed do
    not count. None when fewer than two moments are left or the server gave no token counts.
    """
    sent = [record.sent_s for record in result.records if record.sent_s is not None]
    if not sent:
        return None
    begin, end = min(sent) + warmup_s, _end_s(result, sent)
    chunks = sorted(
        chunk for record in result.records for chunk in _chunks(record) if begin <= chunk[0] <= end
    )
    longest_s = max((later[0] - earlier[0] for earlier, later in pairwise(chunks)), default=0.0)
    if not longest_s:
        return None
    (first_s, first_tokens), last_s = chunks[0], chunks[-1][0]
    tokens = sum(tokens for _, tokens in chunks)
    if first_s - begin > longest_s:
        first_s = begin
    else:
        tokens -= first_tokens
    return tokens / ((end if end - last_s > longest_s else last_s) - first_s) if tokens else None


def _end_s(result: LoadResult, sent: list[float]) -> float:
    """When clients stopped to send because the plan was over: one that hangs sends nothing long before."""
    planned_s = result.plan.arrival.duration_s
    if planned_s is None or result.stopped or result.plan.max_requests is not None:
        return max(sent)
    return min(sent) + planned_s


def _chunks(record: RequestRecord) -> Iterator[tuple[float, float]]:
    """(arrival, tokens) of each token-carrying chunk of an answer that did not fail."""
    if record.outcome not in ("ok", "unfinished") or record.first_token_s is None or not record.output_tokens:
        return
    if record.outcome == "ok" and record.tokens_source != "server":
        return  # a guess from chunks would make an engine that puts two tokens in one look half as fast
    at = record.first_token_s
    for gap_ns in (0, *record.chunk_gaps_ns):
        at += gap_ns / 1e9
        yield at, record.output_tokens / record.chunks
