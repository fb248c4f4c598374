"""A run and the engine's own histograms in Prometheus -> where the client's time went, on average.

network and serialisation (client minus server), queue, prefill, decode, and what the server does not name: they add
up to the client's time from sending to the end of the answer. Connecting comes before that. Means are exact here where
quantiles of parts would not add up. The server's side holds all its traffic in the window; `same_requests` says whether
that was more than this run.
"""

from dataclasses import asdict, dataclass
from typing import Any

from inferwatch.promapi.prometheus import Prometheus
from loadtests.run import LoadResult
from slo.names import engine

SETTLE_S = 15.0  # so that the scrape after the last answer lies inside the window


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Mean seconds a request; None where the engine has no such series, or counted nothing in the window.

    connect_s + client_e2e_s is what a request took; network_s + queue_s + prefill_s + decode_s + server_rest_s is
    client_e2e_s. `server_rest_s` is the server's own time in none of its three stages: tokenising, its HTTP side.
    """

    connect_s: float | None
    network_s: float | None
    queue_s: float | None
    prefill_s: float | None
    decode_s: float | None
    server_rest_s: float | None
    client_e2e_s: float | None
    server_e2e_s: float | None
    client_requests: int
    server_requests: float | None

    @property
    def same_requests(self) -> bool | None:
        """True when the server counted what this client had answered, within 2 %; None when it is unknown."""
        if self.server_requests is None or not self.client_requests:
            return None
        return abs(self.server_requests / self.client_requests - 1) <= 0.02

    def to_json(self) -> dict[str, Any]:
        """All of it, JSON-ready."""
        return {**asdict(self), "same_requests": self.same_requests}

    def lines(self) -> list[str]:
        """For people: a part a line in milliseconds, and what the engine's side is worth."""
        parts = {name: value for name, value in asdict(self).items() if name.endswith("_s")}
        shown = [f"mean {_spoken(name)}: {_milliseconds(value)}" for name, value in parts.items()]
        if self.same_requests:
            return shown
        counted = "unknown" if self.server_requests is None else f"{self.server_requests:.0f}"
        fault = "unknown whether these are" if self.same_requests is None else "these are not"
        return [
            *shown,
            f"{fault} the same requests: the engine counted {counted}, this run {self.client_requests} good answers",
        ]


def split(result: LoadResult, prometheus: Prometheus, matchers: str) -> TimeSplit:
    """Means over the run's successful requests, and the engine's over the same time.

    *matchers* selects the engine's series, such as `service="llm",instance="http://…"`. Raises PromError.
    """
    good = [record for record in result.records if record.outcome == "ok"]
    connect = [record.connect_s or 0.0 for record in good]
    client = [record.e2e_s for record in good if record.e2e_s is not None]
    begin = result.began_s - SETTLE_S
    end = max((record.end_s + record.wall_offset_s for record in good), default=result.ended_s) + SETTLE_S
    window = max(int(end - begin), 1)

    def server_mean(name: str) -> float | None:
        sums, counts = (f"sum(increase({name}_{part}{{{matchers}}}[{window}s]))" for part in ("sum", "count"))
        return prometheus.value(f"{sums} / ({counts} > 0)", at=end)

    server = server_mean(engine.REQUEST_DURATION_SECONDS)
    counted = prometheus.value(
        f"sum(increase({engine.REQUEST_DURATION_SECONDS}_count{{{matchers}}}[{window}s]))", at=end
    )
    mine = sum(client) / len(client) if client else None
    queue, prefill, decode = (
        server_mean(name)
        for name in (
            engine.REQUEST_QUEUE_SECONDS,
            engine.REQUEST_PREFILL_SECONDS,
            engine.REQUEST_DECODE_SECONDS,
        )
    )
    return TimeSplit(
        connect_s=sum(connect) / len(connect) if connect else None,
        network_s=_rest(mine, server),
        queue_s=queue,
        prefill_s=prefill,
        decode_s=decode,
        server_rest_s=_rest(server, queue, prefill, decode),
        client_e2e_s=mine,
        server_e2e_s=server,
        client_requests=len(good),
        server_requests=counted,
    )


def _rest(whole: float | None, *parts: float | None) -> float | None:
    """What of *whole* is in none of *parts*; None when one of them is unknown."""
    known = [part for part in parts if part is not None]
    return None if whole is None or len(known) < len(parts) else whole - sum(known)


def _spoken(name: str) -> str:
    return name.removesuffix("_s").replace("_", " ")


def _milliseconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value * 1e3:.2f} ms"
