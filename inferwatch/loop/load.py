"""The loop's load plans and what their records say: requests and tokens as the client counted them."""

from collections.abc import Sequence
from pathlib import Path

from inferwatch.loop.compare import ClientTruth
from inferwatch.loop.plan import OUTPUT_TOKENS, PROMPT_TOKENS
from loadtests.lengths import Lengths
from loadtests.plan import Arrival, LoadPlan, closed, open_loop
from loadtests.records import RequestRecord
from loadtests.run import LoadProcess, LoadResult


def start(url: str, model: str, folder: Path, arrival: Arrival, abort_share: float = 0.0) -> LoadProcess:
    """Begin a run of streamed chats and completions; records go to *folder*."""
    plan = LoadPlan(
        base_url=url,
        model=model,
        arrival=arrival,
        prompt_tokens=Lengths.parse(PROMPT_TOKENS),
        output_tokens=Lengths.parse(OUTPUT_TOKENS),
        mix={"chat": 1.0, "completions": 1.0},
        abort_share=abort_share,
        prefix_share=0.5,
        ignore_eos=True,
        drain_s=90.0,
    )
    return LoadProcess(plan, folder)


def clients(number: int, seconds: float) -> Arrival:
    """A closed loop of *number* clients."""
    return closed(number, seconds)


def rate(per_second: float, seconds: float) -> Arrival:
    """Poisson arrivals, whatever the server does."""
    return open_loop(per_second, seconds)


def finished(records: Sequence[RequestRecord]) -> list[RequestRecord]:
    """Those that were answered whole."""
    return [record for record in records if record.outcome == "ok"]


def truth(all_records: Sequence[RequestRecord]) -> ClientTruth:
    """
    The client's ledger of a run in which nothing was aborted, hung or killed.

    Raises ValueError when a request failed or lacks the server's usage: nothing exact can be said then.
    """
    records = finished(all_records)
    if other := [r for r in all_records if r.outcome != "ok"]:
        raise ValueError(
            f"{len(other)} of {len(all_records)} requests: {other[0].outcome} {other[0].error_name}"
        )
    if any(r.prompt_tokens is None or r.output_tokens is None for r in records):
        raise ValueError("an answer came without the server's usage")
    return ClientTruth(
        finished=len(records),
        prompt_tokens=sum(r.prompt_tokens or 0 for r in records),
        generation_tokens=sum(r.output_tokens or 0 for r in records),
        ttft_seconds=[r.ttft_s for r in records if r.ttft_s is not None],
        e2e_seconds=[r.e2e_s for r in records if r.e2e_s is not None],
    )


def first_failure(result: LoadResult) -> float | None:
    """Unix seconds when the first request that failed was sent."""
    sent = [
        r.sent_s + r.wall_offset_s for r in result.records if r.outcome == "error" and r.sent_s is not None
    ]
    return min(sent, default=None)
