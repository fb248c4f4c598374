"""Records of a closed loop -> output tokens a second while it was in full swing."""

from collections.abc import Iterator

from loadtests.records import RequestRecord
from loadtests.run import LoadResult


def tokens_per_second(result: LoadResult, warmup_s: float) -> float | None:
    """Output tokens a second between *warmup_s* after the first request and the last time one was sent.

    Tokens are counted when their chunk came, not when their request ended, so that answers cut by the edges of
    the window count for the part inside; each chunk of an answer stands for the same number of tokens. The time
    goes from the first chunk in the window to the last, which an engine's step rhythm cannot blur. Answers that
    failed do not count. None when fewer than two moments are left or the server gave no token counts.
    """
    sent = [record.sent_s for record in result.records if record.sent_s is not None]
    if not sent:
        return None
    begin, end = min(sent) + warmup_s, max(sent)
    chunks = [chunk for record in result.records for chunk in _chunks(record) if begin <= chunk[0] <= end]
    if not chunks:
        return None
    first, last = min(chunks), max(chunks)
    tokens = sum(tokens for _, tokens in chunks) - first[1]
    return tokens / (last[0] - first[0]) if tokens and last[0] > first[0] else None


def _chunks(record: RequestRecord) -> Iterator[tuple[float, float]]:
    """(arrival, tokens) of each token-carrying chunk of an answer that did not fail."""
    if record.outcome not in ("ok", "unfinished") or record.first_token_s is None or not record.output_tokens:
        return
    at = record.first_token_s
    for gap_ns in (0, *record.chunk_gaps_ns):
        at += gap_ns / 1e9
        yield at, record.output_tokens / record.chunks
