"""How the loop loads and how long it waits, fixed before it runs; promises themselves come from slo.yaml."""

from dataclasses import dataclass

from slo.names import alerts


@dataclass(frozen=True)
class LoopPlan:
    """
    Seconds, clients and rates of each phase.

    Attributes:
        history_requests_per_second: the healthy traffic that the backfilled past is said to have had.
        light, overload, abort: clients in a closed loop and how long they go on.
            With 2 requests/s of history an engine that serves 3 to 18 requests/s in overload passes the
            1 h window's 14.4 % in time and stays under the 6 h window's 6 %: the page comes and can resolve.
        overload_seconds: the first stretch, over half of the waiting signal's window; another stretch follows
            while an alert has not come, up to `overload_most_stretches`.
        overload_alerts: must be delivered because of the overload, and resolve after it.
        slow_alerts: judged on 30 m and longer, or on what else the machine does; told, not waited for.
        page_wait_seconds: how long a page is waited for before the phase fails (the promise is shorter).
        resolve_wait_seconds: the longest short burn window, and what delivery takes.
    """

    history_requests_per_second: float = 2.0
    errors_per_second: float = 5.0
    errors_seconds: float = 90.0
    light_clients: int = 2
    light_seconds: float = 30.0
    overload_clients: int = 64
    overload_seconds: float = 155.0
    overload_stretch_seconds: float = 40.0
    overload_most_stretches: int = 6
    abort_clients: int = 4
    abort_seconds: float = 15.0
    abort_share: float = 0.4
    hang_clients: int = 4
    hang_after_seconds: float = 8.0
    quiet_seconds: float = 3.0
    page_wait_seconds: float = 150.0
    overload_wait_seconds: float = 60.0
    resolve_wait_seconds: float = 600.0
    overload_alerts: tuple[str, ...] = (alerts.WAITING_REQUESTS_HIGH, alerts.LATENCY_BURN_FAST)
    slow_alerts: tuple[str, ...] = (
        alerts.AVAILABILITY_BURN_FAST,
        alerts.AVAILABILITY_BURN_SLOW,
        alerts.LATENCY_BURN_SLOW,
        alerts.ERROR_BUDGET_LOW,
        alerts.NOISY_NEIGHBOUR,
        alerts.JOINT_WARN,
    )


# Words; the tiny model's tokenizer makes three to four tokens of one. About 240 prompt tokens and 70 generated
# ones a request keep 64 clients on 8 slots of one CPU core a true overload that the canary still gets through.
PROMPT_TOKENS = "uniform:20:120"
OUTPUT_TOKENS = "uniform:20:120"
