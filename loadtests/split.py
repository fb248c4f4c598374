"""A run and the engine's own histograms in Prometheus -> where the client's time went, on average.

connect, network and serialisation (client minus server), queue, prefill, decode: they add up to what the client
waited. Means are exact here where quantiles of parts would not add up. The server's side holds all its traffic in
the window; `server_requests` beside the client's own count shows when that was more than this run.
"""

from dataclasses import dataclass

from inferwatch.promapi.prometheus import Prometheus
from loadtests.run import LoadResult
from slo.names import engine

SETTLE_S = 15.0  # so that the scrape after the last answer lies inside the window


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Mean seconds a request; None where the engine has no such series, or counted nothing in the window."""

    connect_s: float | None
    network_s: float | None
    queue_s: float | None
    prefill_s: float | None
    decode_s: float | None
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
    return TimeSplit(
        connect_s=sum(connect) / len(connect) if connect else None,
        network_s=mine - server if mine is not None and server is not None else None,
        queue_s=server_mean(engine.REQUEST_QUEUE_SECONDS),
        prefill_s=server_mean(engine.REQUEST_PREFILL_SECONDS),
        decode_s=server_mean(engine.REQUEST_DECODE_SECONDS),
        client_e2e_s=mine,
        server_e2e_s=server,
        client_requests=len(good),
        server_requests=counted,
    )
