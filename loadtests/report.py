"""Records of a run -> its summary as JSON-ready dictionaries, and as a table for people.

Latency figures are of successful requests, nearest-rank percentiles of raw samples; requests cut off at the end of
the run push them up instead of being forgotten. What is not known (no sample, no usage) is None, never 0.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rich.table import Table

from loadtests.records import OUTCOMES, RequestRecord, failures, percentile_with_cut
from loadtests.run import LoadResult
from slo.delivery import LoadClient

PERCENTS = (50.0, 95.0, 99.0, 99.9)
Samples = Callable[[RequestRecord], Iterable[float | None]]

MEASURES: dict[str, Samples] = {
    "ttft_s": lambda record: (record.ttft_s,),
    "e2e_s": lambda record: (record.e2e_s,),
    "tpot_s": lambda record: (record.tpot_s,),
    "inter_chunk_gap_s": lambda record: (gap / 1e9 for gap in record.chunk_gaps_ns),
    "latency_from_schedule_s": lambda record: (record.latency_from_schedule_s,),
    "connect_s": lambda record: (record.connect_s,),
}


def distribution(samples: Iterable[float | None], cut: Iterable[float] = ()) -> dict[str, Any] | None:
    """count, mean, max and the percentiles p50 to p99.9 of what is known; None when nothing is.

    *cut* are durations that were still going on when they were cut off. They move the percentiles up (see
    `percentile_with_cut`), and make those beyond what was seen, the mean and the largest None.
    """
    ordered = sorted(sample for sample in samples if sample is not None)
    still_on = sorted(cut)
    if not ordered:
        return None
    figures: dict[str, Any] = {"count": len(ordered), "cut": len(still_on)}
    figures["mean"] = None if still_on else sum(ordered) / len(ordered)
    figures |= {f"p{percent:g}": percentile_with_cut(ordered, still_on, percent) for percent in PERCENTS}
    figures["max"] = None if still_on else ordered[-1]
    return figures


def cut_off(records: Iterable[RequestRecord], measure: str) -> list[float]:
    """How long *measure* had lasted for each request that was cut off before it was over."""
    cut = [record for record in records if record.outcome == "unfinished" and record.sent_s is not None]
    if measure == "ttft_s":
        return [record.end_s - (record.sent_s or 0.0) for record in cut if record.first_token_s is None]
    if measure == "e2e_s":
        return [record.end_s - (record.sent_s or 0.0) for record in cut]
    if measure == "latency_from_schedule_s":
        return [record.end_s - record.scheduled_s for record in cut]
    return []


def summarise(result: LoadResult, limits: LoadClient) -> dict[str, Any]:
    """Everything a run says, JSON-ready."""
    records = result.records
    last_tries = [record for record in records if not record.will_retry]
    good = [record for record in records if record.outcome == "ok"]
    outcomes = Counter(record.outcome for record in last_tries)
    failed, judged = failures(last_tries, stopped=result.stopped)
    return {
        "folder": str(result.folder),
        "base_url": result.plan.base_url,
        "model": result.plan.model,
        "arrival": result.plan.arrival.kind,
        "began_s": result.began_s,
        "ended_s": result.ended_s,
        "stopped": result.stopped,
        "requests": {"total": len(last_tries), **{name: outcomes[name] for name in OUTCOMES}},
        "retries": len(records) - len(last_tries),
        "error_ratio": failed / judged if judged else None,
        "errors": dict(
            Counter(record.error_name for record in last_tries if record.outcome == "error").most_common()
        ),
        "attempt_errors": dict(
            Counter(record.error_name for record in records if record.outcome == "error").most_common()
        ),
        "rates": rates(result),
        "latency": {
            name: distribution((s for r in good for s in of(r)), cut_off(last_tries, name))
            for name, of in MEASURES.items()
        },
        "schedule_delay_s": distribution(r.schedule_delay_s for r in records if r.attempt == 0),
        "tokens": _tokens(records, good),
        "clocks": dict(Counter(record.clock for record in records if record.first_byte_s is not None)),
        "client": client_health(result.health, limits),
        "groups": {label: _groups(last_tries, label) for label in ("endpoint", "tenant", "lane")},
    }


def client_health(samples: Sequence[dict[str, Any]], limits: LoadClient) -> dict[str, Any]:
    """CPU share and event-loop lag of the load client itself, of the worker that is worst off in each.

    One of many workers that is the bottleneck must not drown among idle ones, nor a pulse among idle seconds:
    `cpu_ratio_at_requests_p95` is the share in the second in which the 95th of 100 requests was due. `saturated` is
    None when a worker, or the whole client, was never sampled and none is saturated.
    """
    workers: dict[int, list[dict[str, Any]]] = {}
    for sample in samples:
        workers.setdefault(sample.get("worker", 0), []).append(sample)
    whole = [[sample for sample in own if sample["seconds"] >= 0.5] for own in workers.values()]
    shares = [distribution(sample["cpu_ratio"] for sample in own) for own in whole]
    lags = [distribution(value for s in own for value in s["lag_s"]) for own in workers.values()]
    cpu = max((one for one in shares if one is not None), key=lambda one: float(one["p95"]), default=None)
    lag = max((one for one in lags if one is not None), key=lambda one: float(one["p99"]), default=None)
    at_requests = max((one for own in whole if (one := _cpu_at_requests(own)) is not None), default=None)
    saturated: bool | None = None
    if cpu is not None and lag is not None:
        highest = max(cpu["p95"], at_requests or 0.0)
        saturated = highest > limits.max_cpu_ratio or lag["p99"] > limits.max_lag_seconds
        if not saturated and (None in shares or None in lags):
            saturated = None
    return {
        "cpu_ratio": cpu,
        "cpu_ratio_at_requests_p95": at_requests,
        "event_loop_lag_s": lag,
        "saturated": saturated,
    }


def _cpu_at_requests(samples: Sequence[dict[str, Any]]) -> float | None:
    """P95 over requests, not over time, of the CPU share while they were due; None when none was."""
    weighted: list[tuple[float, float]] = sorted(
        (s["cpu_ratio"], s.get("due_per_s", 0.0) * s["seconds"]) for s in samples
    )
    total = sum(due for _, due in weighted)
    if not total:
        return None
    reached = itertools.accumulate(due for _, due in weighted)
    return next(
        ratio for (ratio, _), due in zip(weighted, reached, strict=True) if due >= 0.95 * total - 1e-9
    )


def rates(result: LoadResult) -> dict[str, float | None]:
    """Per second: the plan's target, what was sent, what was answered well, output tokens of good answers that told them.

    The target and what was sent (or tried, where the server took no connection) are over the time of the plan; answers
    and tokens from the first send to the last good end. A closed loop has no target.
    """
    good = [record for record in result.records if record.outcome == "ok"]
    firsts = [record for record in result.records if record.attempt == 0]
    sent = [record for record in firsts if record.sent_s is not None or record.outcome == "error"]
    span = _schedule_span(result, firsts)
    ends = max((record.end_s for record in good), default=None)
    begin = min((record.sent_s for record in sent if record.sent_s is not None), default=None)
    busy = ends - begin if ends is not None and begin is not None else None
    tokens = _known_sum(record.output_tokens for record in good)
    open_loop = result.plan.arrival.kind != "closed"
    return {
        "span_s": span,
        "target_per_s": len(firsts) / span if open_loop and span else None,
        "sent_per_s": len(sent) / _sending_span(sent, span) if span and sent else None,
        "good_per_s": len(good) / busy if busy else None,
        "output_tokens_per_s": tokens / busy if busy and tokens is not None else None,
    }


def _schedule_span(result: LoadResult, firsts: list[RequestRecord]) -> float | None:
    """Seconds over which requests were due: the plan's length, or first to last when it ended early."""
    if not firsts:
        return None
    spread = firsts[-1].scheduled_s - firsts[0].scheduled_s
    planned = result.plan.arrival.duration_s
    cut = result.stopped or result.plan.max_requests is not None or planned is None
    return (spread or None) if cut else planned


def _sending_span(sent: list[RequestRecord], span: float) -> float:
    """The schedule's span, stretched to the last send (without connecting) when the client ran behind."""
    starts = [record.scheduled_s + record.schedule_delay_s for record in sent]
    return max(span, max(starts) - min(record.scheduled_s for record in sent))


def _known_sum(counts: Iterable[int | None]) -> int | None:
    """Sum of what was told; None when nothing was."""
    told = [count for count in counts if count is not None]
    return sum(told) if told else None


def _tokens(records: Sequence[RequestRecord], good: list[RequestRecord]) -> dict[str, int | None]:
    return {
        "prompt": _known_sum(record.prompt_tokens for record in good),
        "output": _known_sum(record.output_tokens for record in good),
        "cached": _known_sum(record.cached_tokens for record in good),
        "wasted_output": _known_sum(record.output_tokens for record in records if record.outcome != "ok"),
        "answers_counted_by_server": sum(record.tokens_source == "server" for record in good),
        "answers_estimated": sum(record.tokens_source == "estimated" for record in good),
    }


def _groups(records: list[RequestRecord], label: str) -> dict[str, dict[str, Any]]:
    names = sorted({name for record in records if (name := getattr(record, label)) is not None})
    return {name: _group([r for r in records if getattr(r, label) == name]) for name in names}


def _group(records: list[RequestRecord]) -> dict[str, Any]:
    good = [record for record in records if record.outcome == "ok"]
    return {
        "requests": len(records),
        "errors": sum(record.outcome == "error" for record in records),
        "unfinished": sum(record.outcome == "unfinished" for record in records),
        "ttft_s": distribution((record.ttft_s for record in good), cut_off(records, "ttft_s")),
        "e2e_s": distribution((record.e2e_s for record in good), cut_off(records, "e2e_s")),
    }


def table(summary: dict[str, Any]) -> Table:
    """The summary for people: times in milliseconds, "–" where nothing is known."""
    requests, rates, client = summary["requests"], summary["rates"], summary["client"]
    shown = Table(title=f"{summary['model']} at {summary['base_url']}", title_justify="left")
    for column in ("", "count", "P50 ms", "P95 ms", "P99 ms", "P99.9 ms", "max ms"):
        shown.add_column(column, justify="left" if not column else "right")
    measures = {**summary["latency"], "schedule_delay_s": summary["schedule_delay_s"]}
    for name, figures in measures.items():
        keys = ("p50", "p95", "p99", "p99.9", "max")
        cells = (
            ["–"] * 6
            if figures is None
            else [str(figures["count"]), *(_milliseconds(figures[k]) for k in keys)]
        )
        shown.add_row(name.removesuffix("_s").replace("_", " "), *cells)
    outcomes = ", ".join(f"{requests[name]} {name}" for name in OUTCOMES)
    caption = [f"{requests['total']} requests: {outcomes}; {summary['retries']} retries"]
    caption += [f"{count} × {name}" for name, count in summary["errors"].items()]
    caption.append(
        f"target {_number(rates['target_per_s'])}/s, sent {_number(rates['sent_per_s'])}/s, "
        f"good {_number(rates['good_per_s'])}/s, {_number(rates['output_tokens_per_s'])} output tokens/s"
    )
    cpu = client["cpu_ratio"]["p95"] if client["cpu_ratio"] else None
    state = {True: "SATURATED: its numbers are its own", False: "not saturated", None: "not sampled"}
    caption.append(f"client: {_number(cpu)} of a core (P95), {state[client['saturated']]}")
    shown.caption, shown.caption_justify = "\n".join(caption), "left"
    return shown


def _milliseconds(value: float | None) -> str:
    return "–" if value is None else f"{value * 1e3:.2f}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
