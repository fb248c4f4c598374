"""Records of a closed loop -> output tokens a second while it was in full swing."""

from loadtests.records import RequestRecord
from loadtests.run import LoadResult


def tokens_per_second(result: LoadResult, warmup_s: float) -> float | None:
    """Output tokens a second between *warmup_s* after the first request and the last time one was sent.

    Tokens are counted when their chunk came, not when their request ended, so that answers cut by the edges of
    the window count for the part inside; each chunk of an answer stands for the same number of tokens. Answers
    that failed do not count. None when the window is empty or the server gave no token counts.
    """
    sent = [record.sent_s for record in result.records if record.sent_s is not None]
    if not sent:
        return None
    begin, end = min(sent) + warmup_s, max(sent)
    if end <= begin:
        return None
    tokens = sum(_tokens_between(record, begin, end) for record in result.records)
    return tokens / (end - begin) if tokens else None


def _tokens_between(record: RequestRecord, begin: float, end: float) -> float:
    if record.outcome not in ("ok", "unfinished") or record.first_token_s is None or not record.chunks:
        return 0.0
    at, inside = record.first_token_s, 0
    for gap_ns in (0, *record.chunk_gaps_ns):
        at += gap_ns / 1e9
        inside += begin <= at < end
    return inside * (record.output_tokens or 0) / record.chunks
