"""The Load tests page: does the service hold this load, and can the load client be believed?"""

from dashboards.common import SOURCE_RULES, annotations, recorded, variables
from dashboards.layout import Band, lay_out
from dashboards.panels import stat, timeseries
from dashboards.steps import bad_above
from dashboards.style import GREEN, GREY, ORANGE, PURPLE, RED, SKY, Json, ModernPanel, dashboard, query
from slo.delivery import Gate
from slo.names import load, records
from slo.names.dashboards import LOAD_UID
from slo.spec import Spec

SOURCE = "the load client's own records, through `inferwatch load`"
SERVICE = 'service=~"$service"'
RATE = "$__rate_interval"
MEASURES = {
    "time_to_first_token": "ttft",
    "request_duration": "e2e",
    "time_per_output_token": "tpot",
    "inter_chunk_gap": "inter_chunk_gap",
    "latency_from_schedule": "latency_from_schedule",
}
"""SLI of slo.yaml -> the load client's name of the same measure."""


def build(spec: Spec) -> Json:
    """The Load tests page; the lines are the gates and the load client's own limits in *spec*."""
    return dashboard(
        uid=LOAD_UID,
        title="Load tests: does the service hold this load?",
        description="A load run while it goes on, as the client measures it, beside the gates of slo.yaml.",
        panels=lay_out([_answer(spec), _latency(spec), _load(), _trust(spec)]),
        variables=variables(),
        annotations=annotations(),
        tags=("load",),
    )


def _gates(spec: Spec) -> list[Gate]:
    """Those of all requests: the live series of a run know no lane or tenant."""
    return [gate for gate in spec.gates if gate.lane is None and gate.tenant is None]


def _latency_gate(spec: Spec) -> Gate:
    return next(g for g in _gates(spec) if g.quantile is not None and g.max_seconds is not None)


def _of(metric: str, more: str = "") -> str:
    return f"{metric}{{{more + ',' if more else ''}{SERVICE}}}"


def _quantile(measure: str, quantile: float | str) -> str:
    chosen = _of(load.LATENCY, f'measure="{measure}",quantile="{quantile}"')
    return f"max({chosen})"


def _answer(spec: Spec) -> Band:
    gate = _latency_gate(spec)
    seconds, quantile = gate.max_seconds or 0.0, gate.quantile or 0.0
    errors = next(g.max_ratio for g in _gates(spec) if g.sli == "errors") or 0.0
    begun, wanted = (f"sum(avg_over_time({_of(m)}[1m]))" for m in (load.SENT_RATE, load.TARGET_RATE))
    return Band(
        5,
        [
            stat(
                f"P{quantile * 100:g} {gate.sli.replace('_', ' ')}",
                f"What the latency gate judges, over the last seconds; the gate allows {seconds:g} s.",
                SOURCE,
                [query(_quantile(MEASURES[gate.sli], quantile))],
                "s",
                steps=bad_above(seconds),
                width=6,
                no_value="no load run",
            ),
            stat(
                "Failed requests",
                f"Share of requests that failed over the last seconds; the gate allows {errors:.2%}.",
                SOURCE,
                [query(f"max({_of(load.ERROR_RATIO)})")],
                "percentunit",
                steps=bad_above(errors),
                width=6,
                no_value="no load run",
            ),
            stat(
                "Requests in flight",
                "Requests that were sent and are not answered yet.",
                SOURCE,
                [query(f"sum({_of(load.IN_FLIGHT)})")],
                "none",
                width=6,
                unit_words="requests",
                no_value="no load run",
            ),
            stat(
                "Load kept up",
                "Requests begun over requests wanted in the last minute; under 100 % the client, not the service, is the limit. A "
                "closed loop wants no rate.",
                SOURCE,
                [query(f"{begun} / {wanted}")],
                "percentunit",
                steps=((None, RED), (spec.gate_test.min_rate_ratio, GREEN)),
                width=6,
                decimals=0,
                maximum=10,
                no_value="no rate is wanted",
            ),
        ],
    )


def _client_and_server(sli: str, title: str, what: str, limit: float | None) -> ModernPanel:
    server = recorded(records.LATENCY_QUANTILE, f'sli="{sli}",quantile="0.95"')
    return timeseries(
        title,
        f"{what}: as the client saw it in the last seconds, and the P95 that the engine's own histogram gives over "
        "5 m.",
        f"{SOURCE}; {SOURCE_RULES}",
        [
            *(query(_quantile(MEASURES[sli], q), f"client P{q * 100:g}") for q in (0.5, 0.95, 0.99)),
            query(f"max({server})", "engine P95"),
        ],
        "s",
        width=8,
        colours=(SKY, ORANGE, RED, GREY),
        limits=() if limit is None else ((limit, RED),),
    )


def _latency(spec: Spec) -> Band:
    limits: dict[str, float | None] = {g.sli: g.max_seconds for g in _gates(spec)}
    titles = (
        ("time_to_first_token", "Time to first token", "From sending to the first token"),
        ("request_duration", "Whole request", "From sending to the last token"),
        ("time_per_output_token", "Time per output token", "Mean time between tokens of a request"),
    )
    return Band(
        9,
        [_client_and_server(sli, title, what, limits.get(sli)) for sli, title, what in titles],
        "What clients see",
    )


def _load() -> Band:
    ended = f"sum by (outcome) (rate({_of(load.REQUESTS)}[{RATE}]))"
    return Band(
        8,
        [
            timeseries(
                "Requests wanted, begun",
                "The plan's rate and the rate at which requests were begun.",
                SOURCE,
                [
                    query(f"sum({_of(load.TARGET_RATE)})", "wanted"),
                    query(f"sum({_of(load.SENT_RATE)})", "begun"),
                ],
                "reqps",
                width=8,
                colours=(GREY, SKY),
            ),
            timeseries(
                "Requests that ended, by outcome",
                "Answers, failures and requests that the client gave up, as they ended.",
                SOURCE,
                [query(ended, "{{outcome}}")],
                "reqps",
                width=8,
                stack=True,
                many=True,
            ),
            timeseries(
                "Output tokens",
                "Tokens of good answers, as the server counted them; counted when an answer ends.",
                SOURCE,
                [query(f"sum(rate({_of(load.OUTPUT_TOKENS)}[{RATE}]))", "output tokens")],
                width=8,
                colours=(GREEN,),
                unit_words="tokens per second",
            ),
        ],
        "The load",
    )


def _trust(spec: Spec) -> Band:
    client = spec.load.client
    return Band(
        8,
        [
            timeseries(
                "CPU of the load client",
                "Share of one core that each load process uses; near the line it measures itself.",
                SOURCE,
                [query(f"max by (worker) ({_of(load.CLIENT_CPU)})", "worker {{worker}}")],
                "percentunit",
                width=8,
                many=True,
                limits=((client.max_cpu_ratio, RED),),
            ),
            timeseries(
                "Event-loop lag of the load client",
                "How late the load client reads; what it adds to every latency.",
                SOURCE,
                [query(f"max by (worker) ({_of(load.CLIENT_LAG)})", "worker {{worker}}")],
                "s",
                width=8,
                many=True,
                limits=((client.max_lag_seconds, RED),),
            ),
            timeseries(
                "Requests sent late",
                "How long after its planned time a request was sent; late sends hide queueing.",
                SOURCE,
                [
                    query(f"max by (quantile) ({_of(load.SCHEDULE_DELAY)})", "P {{quantile}}"),
                ],
                "s",
                width=8,
                many=True,
                colours=(PURPLE,),
            ),
        ],
        "Can the client be believed?",
    )
