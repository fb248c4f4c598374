"""The Engine page: what is the engine doing, and where do requests spend their time?"""

from dashboards.common import (
    SERVICE,
    SOURCE_ENGINE,
    WHOLE_ENGINE,
    annotations,
    buckets,
    mean,
    of,
    quantile,
    rate,
    variables,
)
from dashboards.grids import heatmap, table
from dashboards.layout import Band, lay_out
from dashboards.panels import stat, state_timeline, timeseries
from dashboards.steps import bad_above, states
from dashboards.style import GREEN, GREY, ORANGE, PURPLE, RED, SKY, Json, ModernPanel, dashboard, query
from slo.names import engine, records
from slo.names.dashboards import ENGINE_UID
from slo.spec import Spec

QUANTILE_COLOURS = (SKY, ORANGE, RED)


def build(spec: Spec) -> Json:
    """The Engine page; thresholds come from *spec*."""
    return dashboard(
        uid=ENGINE_UID,
        title="Engine: what is it doing, and where do requests spend their time?",
        description="State, load and latency of every engine, by instance; raw engine series over short ranges.",
        panels=lay_out([_answer(spec), _latency(), _stages(), _load(spec), _tokens()]),
        variables=variables(),
        annotations=annotations(),
        tags=("engine",),
    )


def _states() -> ModernPanel:
    probe = of(engine.PROBE_SUCCESS, labels=WHOLE_ENGINE)
    sleeping = of(engine.ENGINE_SLEEPING)
    stuck = of(records.INSTANCE_STUCK_REQUESTS, labels=f'{SERVICE},instance=~"$instance"')
    down = of(records.INSTANCE_DOWN, labels=f'{SERVICE},instance=~"$instance"')
    return state_timeline(
        "State of each engine",
        "Whether each engine answers with its own metrics, sleeps, hangs with requests in it, is down, or answers "
        "what cannot be read.",
        f"{engine.PROBE_SUCCESS} and {engine.ENGINE_SLEEPING} of exporters/engine; {records.INSTANCE_STUCK_REQUESTS}, "
        f"{records.INSTANCE_DOWN}",
        [
            query(
                f"max by (instance) (({stuck} > bool 0) * 3 > 0) or max by (instance) ({down} * 4 > 0)"
                f" or max by (instance) ({sleeping} * 2 > 1) or min by (instance) ({probe})",
                "{{instance}}",
            )
        ],
        states(
            {
                0: ("not readable", GREY),
                1: ("up", GREEN),
                2: ("asleep", PURPLE),
                3: ("hangs", ORANGE),
                4: ("down", RED),
            }
        ),
        width=12,
        unit_words="a state by name",
    )


def _answer(spec: Spec) -> Band:
    waiting = spec.signal("waiting-requests").threshold
    kv = spec.signal("kv-pressure").threshold
    up = f"sum({of(engine.PROBE_SUCCESS, labels=WHOLE_ENGINE)})"
    return Band(
        5,
        [
            stat(
                "Engines up",
                "How many engines answered their last probe with metrics.",
                f"{engine.PROBE_SUCCESS} of exporters/engine",
                [query(up)],
                steps=((None, RED), (1, GREEN)),
                width=3,
            ),
            stat(
                "Waiting requests",
                f"Requests that wait for a slot; a standing queue over {waiting:g} is an early signal.",
                SOURCE_ENGINE,
                [query(f"sum({of(engine.REQUESTS_WAITING)})")],
                steps=bad_above(waiting),
                width=3,
            ),
            stat(
                "KV cache in use",
                f"Share of KV blocks held by live requests; over {kv:.0%} the engine preempts.",
                SOURCE_ENGINE,
                [query(f"max({of(engine.KV_CACHE_USAGE_RATIO)})")],
                "percentunit",
                steps=bad_above(kv),
                width=3,
                decimals=1,
            ),
            stat(
                "Output tokens/s",
                "Tokens generated per second by all chosen engines.",
                SOURCE_ENGINE,
                [query(rate(engine.GENERATION_TOKENS_TOTAL))],
                "short",
                unit_words="tokens per second",
                width=3,
                decimals=0,
            ),
            _states(),
        ],
    )


def _latency() -> Band:
    reads = "How long requests took, all of them and not only a quantile:"
    return Band(
        9,
        [
            heatmap(
                "Time to first token",
                f"{reads} from arrival to the first token.",
                SOURCE_ENGINE,
                buckets(engine.TIME_TO_FIRST_TOKEN_SECONDS),
                width=8,
            ),
            heatmap(
                "Inter-token latency",
                f"{reads} between two streamed outputs.",
                SOURCE_ENGINE,
                buckets(engine.INTER_TOKEN_LATENCY_SECONDS),
                width=8,
            ),
            heatmap(
                "Whole request",
                f"{reads} from arrival to the last token.",
                SOURCE_ENGINE,
                buckets(engine.REQUEST_DURATION_SECONDS),
                width=8,
            ),
        ],
        "Latency as users feel it",
    )


def _stages() -> Band:
    stages = (
        (engine.REQUEST_QUEUE_SECONDS, "queue"),
        (engine.REQUEST_PREFILL_SECONDS, "prefill"),
        (engine.REQUEST_DECODE_SECONDS, "decode"),
    )
    return Band(
        8,
        [
            timeseries(
                "Queue, prefill, decode",
                "Where a finished request spent its time on average; the three add up to the time in the engine.",
                SOURCE_ENGINE,
                [query(mean(metric), name) for metric, name in stages],
                "s",
                width=8,
                stack=True,
                colours=(PURPLE, ORANGE, SKY),
            ),
            timeseries(
                "Time to first token, quantiles",
                "The first token's latency at P50, P95 and P99.",
                SOURCE_ENGINE,
                [
                    query(quantile(q, engine.TIME_TO_FIRST_TOKEN_SECONDS), f"P{q * 100:g}")
                    for q in (0.5, 0.95, 0.99)
                ],
                "s",
                width=8,
                colours=QUANTILE_COLOURS,
            ),
            heatmap(
                "Queue time",
                "How long finished requests waited for their first slot; the lowest bucket ends at 0.3 s.",
                SOURCE_ENGINE,
                buckets(engine.REQUEST_QUEUE_SECONDS),
                width=8,
                exemplar=False,
            ),
        ],
        "Where the time goes",
    )


def _load(spec: Spec) -> Band:
    waiting = spec.signal("waiting-requests").threshold
    kv = spec.signal("kv-pressure").threshold
    return Band(
        8,
        [
            timeseries(
                "Running and waiting requests",
                "Requests in the batch and requests that wait for a slot.",
                SOURCE_ENGINE,
                [
                    query(f"sum({of(engine.REQUESTS_RUNNING)})", "running"),
                    query(f"sum({of(engine.REQUESTS_WAITING)})", "waiting"),
                ],
                width=8,
                limits=((waiting, ORANGE),),
                colours=(SKY, RED),
                unit_words="requests",
            ),
            timeseries(
                "KV cache in use",
                "Share of KV blocks held by live requests, by instance; cached prefixes count as free.",
                SOURCE_ENGINE,
                [query(f"max by (instance) ({of(engine.KV_CACHE_USAGE_RATIO)})", "{{instance}}")],
                "percentunit",
                width=8,
                maximum=1,
                limits=((kv, RED),),
                many=True,
            ),
            timeseries(
                "Finished requests by reason",
                "Requests that ended, by how they ended; the engine does not count client aborts.",
                SOURCE_ENGINE,
                [query(rate(engine.REQUESTS_TOTAL, by="finish_reason"), "{{finish_reason}}")],
                "reqps",
                width=8,
                stack=True,
                many=True,
            ),
        ],
        "Load and room",
    )


def _tokens() -> Band:
    return Band(
        8,
        [
            timeseries(
                "Tokens in and out",
                "Prompt tokens computed or taken from cache, and tokens generated.",
                SOURCE_ENGINE,
                [
                    query(rate(engine.PROMPT_TOKENS_TOTAL), "prompt"),
                    query(rate(engine.GENERATION_TOKENS_TOTAL), "generated"),
                ],
                "short",
                unit_words="tokens per second",
                width=8,
                colours=(GREY, GREEN),
            ),
            heatmap(
                "Tokens per engine step",
                "How full each step's batch of tokens was.",
                SOURCE_ENGINE,
                buckets(engine.ITERATION_TOKENS),
                "none",
                unit_words="tokens",
                width=8,
                exemplar=False,
            ),
            table(
                "What runs where",
                "Engine, version and model behind each instance.",
                f"{engine.ENGINE_INFO} of exporters/engine",
                [query(f"max by (instance, model, engine, version) ({of(engine.ENGINE_INFO)})", instant=True, format="table")],
                width=8,
                unit_words="names",
                transformations=[
                    {
                        "id": "organize",
                        "options": {
                            "excludeByName": {"Time": True, "Value": True},
                            "indexByName": {"instance": 0, "model": 1, "engine": 2, "version": 3},
                            "renameByName": {
                                "engine": "Engine",
                                "instance": "Instance",
                                "model": "Model",
                                "version": "Version",
                            },
                        },
                    }
                ],
            ),
        ],
        "Tokens and what runs",
    )  # fmt: skip
