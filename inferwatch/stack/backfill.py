"""A spec and its services' usual traffic -> a healthy past in Prometheus' data directory, before it starts.

Written is exactly what the rules sum their windows from, by their own account (alerts/windows.py): events
per second at every evaluation for the quickest windows, resampled ones for the rest. Prometheus computes
every ratio from them itself.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from inferwatch.stack.blocks import ConstantSeries, write_blocks
from inferwatch.stack.errors import StackError
from slo.burn import window_lengths
from slo.names import labels
from slo.spec import Spec

if TYPE_CHECKING:
    from alerts.scope import Scope

HOUR_SECONDS = 3600


@dataclass(frozen=True)
class ServiceHistory:
    """
    The past of one model of one service.

    Attributes:
        service: an id of slo.yaml.
        model: as the engine will name it; another name is another series.
        requests_per_second: the steady traffic it is said to have had.
        bad_ratios: id of an SLO -> share of its events that were bad; 0 for those left out.
        hours: how far back this one goes, where not as far as the others.
    """

    service: str
    model: str
    requests_per_second: float
    bad_ratios: Mapping[str, float] = field(default_factory=dict)
    hours: float | None = None


@dataclass(frozen=True)
class Written:
    """What was written; *first* and *last* are the times of the oldest and newest sample, Unix seconds."""

    series: int
    samples: int
    blocks: int
    first: int
    last: int


def backfill(
    spec: Spec,
    data_dir: Path,
    services: Sequence[ServiceHistory],
    promtool: Path,
    until: float | None = None,
    hours: float | None = None,
    more: Sequence[ConstantSeries] = (),
) -> Written:
    """
    Write the history of *services* that ends just before *until* (now, when left out).

    *hours*: how far back the resampled records go; the longest burn window when left out. Give the
    budget's period (24 × period_days) to fill the budget left as well. *more*: series of the caller's own, written
    with them, since a directory is written only once. Start Prometheus right after.
    Raises StackError for a service that the spec lacks, a series twice, or a directory that holds data.
    """
    end = int(time.time() if until is None else until)
    longest = max(window_lengths(spec.budget))
    _check(spec, services, hours)
    series: list[ConstantSeries] = [*more]
    for history in services:
        own = hours if history.hours is None else history.hours
        series += _series(spec, history, end, longest if own is None else int(own * HOUR_SECONDS))
    blocks = write_blocks(series, data_dir, promtool)
    return Written(
        series=len(series),
        samples=sum(one.samples() for one in series),
        blocks=blocks,
        first=min(one.start for one in series),
        last=max(one.start + (one.samples() - 1) * one.step_seconds for one in series),
    )


def _series(spec: Spec, history: ServiceHistory, end: int, reach: int) -> Iterator[ConstantSeries]:
    from alerts.events import slo_labels
    from alerts.scope import Scope

    scope = Scope(spec, spec.service(history.service))
    for slo in scope.service.slos:
        own = slo_labels(scope, slo) | {labels.MODEL: history.model}
        for (bad, total, step), wanted in _spans(scope, reach).items():
            start = end - step * (wanted // step + 1)
            failed = history.requests_per_second * history.bad_ratios.get(slo.id, 0.0)
            yield ConstantSeries(bad, own, failed, start, end, step)
            yield ConstantSeries(total, own, history.requests_per_second, start, end, step)


def _spans(scope: "Scope", reach: int) -> dict[tuple[str, str, int], int]:
    """Record of bad events, of all events, step in seconds -> how many seconds of them windows read."""
    from alerts.events import TRAILING_SECONDS
    from alerts.windows import events, period_seconds, quick_lengths, step_seconds

    quick = quick_lengths(scope)
    # The rate that is imputed to a service while it is down is averaged over the same records.
    lengths = {
        length: max(length, TRAILING_SECONDS) if length in quick else reach
        for length in (*window_lengths(scope.spec.budget), period_seconds(scope))
    }
    spans: dict[tuple[str, str, int], int] = {}
    for length, wanted in lengths.items():
        key = (*events(scope, length), step_seconds(scope, length))
        spans[key] = max(spans.get(key, 0), min(wanted, reach))
    return spans


def _check(spec: Spec, services: Sequence[ServiceHistory], hours: float | None) -> None:
    if not services:
        raise StackError(
            "a history needs at least one service; name its id in slo.yaml, its model and its rate"
        )
    seen: set[tuple[str, str]] = set()
    for history in services:
        if history.service not in {service.id for service in spec.services}:
            known = ", ".join(service.id for service in spec.services)
            raise StackError(
                f"slo.yaml has no service {history.service!r} to write a history for; it has {known}"
            )
        if (history.service, history.model) in seen:
            raise StackError(
                f"{history.service!r} with model {history.model!r} stands twice; add its instances' rates up"
            )
        if (length := hours if history.hours is None else history.hours) is not None and length <= 0:
            raise StackError(f"a history of {length} hours; give more than 0")
        slos = {slo.id for slo in spec.service(history.service).slos}
        for slo, ratio in history.bad_ratios.items():
            if slo not in slos or not 0 <= ratio <= 1:
                raise StackError(
                    f"{history.service!r}: a share of {ratio} bad events of {slo!r}; give one of 0 to 1, of "
                    f"{', '.join(sorted(slos))}"
                )
        if not 0 <= history.requests_per_second < float("inf"):
            raise StackError(
                f"{history.service!r}: {history.requests_per_second} requests per second; give a rate of 0 or more"
            )
        seen.add((history.service, history.model))
