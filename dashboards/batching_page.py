"""The Batching page: how large a batch keeps the promise, and where does it stop paying?"""

from dashboards.common import (
    SOURCE_ENGINE,
    SOURCE_RULES,
    annotations,
    buckets,
    of,
    quantile,
    rate,
    recorded,
    variables,
)
from dashboards.grids import heatmap, matrix
from dashboards.layout import Band, lay_out
from dashboards.panels import stat, timeseries
from dashboards.style import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, Json, ModernPanel, dashboard, query
from slo.duration import format_seconds
from slo.names import analysis, engine, records
from slo.names.dashboards import BATCHING_UID
from slo.spec import Spec

SOURCE = "exporters/analysis over recorded windows"
MARK = 10
"""Added to the share of a cell in the best region, so that one value says both."""


def build(spec: Spec) -> Json:
    """The Batching page; windows and the share that makes a cell good come from *spec*."""
    return dashboard(
        uid=BATCHING_UID,
        title="Batching: how large a batch keeps the promise?",
        description="Which batch sizes and request rates kept every promise, and what batches cost and bring.",
        panels=lay_out([_answer(spec), _grid(spec), _now(spec), _yield()]),
        variables=variables(),
        annotations=annotations(),
        span="now-3h",
        tags=("batching",),
    )


def _answer(spec: Spec) -> Band:
    good = f"{spec.analysis.kept_ratio:.0%}"

    def at(metric: str, edge: str) -> str:
        chosen = recorded(metric, f'{analysis.LABEL_EDGE}="{edge}"')
        return f"max({chosen})"

    edges = [
        (f"{what} {edge}", at(metric, edge))
        for metric, what in ((analysis.REGION_BATCH, "batch"), (analysis.REGION_RATE, "req/s"))
        for edge in (analysis.EDGE_LOWER, analysis.EDGE_UPPER)
    ]
    return Band(
        5,
        [
            stat(
                "Batch limit to set",
                "The upper bound of the lower-left cell of the best region (lowest request rate, and there the "
                "smallest batch): set the engine's limit on running requests to it. The region's own bounds "
                "stand beside it.",
                SOURCE,
                [query(f"min({recorded(analysis.BATCH_LIMIT)})")],
                "none",
                width=5,
                spark=False,
                no_value="no good region yet",
                unit_words="running requests per engine",
            ),
            stat(
                "What the best region spans",
                f"The largest connected set of cells in which at least {good} of the windows kept every promise.",
                SOURCE,
                [query(expr, name) for name, expr in edges],
                "none",
                width=9,
                spark=False,
                no_value="none",
                text="value_and_name",
                unit_words="running requests, and requests per second, per engine",
            ),
            stat(
                "Batch now",
                "Requests that run in the batch, as a mean per engine.",
                SOURCE_ENGINE,
                [query(f"avg({of(engine.REQUESTS_RUNNING)})")],
                "none",
                width=5,
                decimals=1,
                unit_words="running requests per engine",
            ),
            stat(
                "Windows in the best region",
                "How much history the best region rests on; 0 means that no cell is good.",
                SOURCE,
                [query(f"max({recorded(analysis.REGION_WINDOWS)})")],
                "none",
                steps=((None, ORANGE), (spec.analysis.min_windows, GREEN)),
                width=5,
                spark=False,
                unit_words="windows",
            ),
        ],
    )


def _grid(spec: Spec) -> Band:
    def cells(metric: str) -> str:
        chosen = recorded(metric, f'{analysis.LABEL_GRID}="{analysis.GRID_BATCH_RATE}"')
        return f"sum by (x, y) ({chosen})"

    share = f"{cells(analysis.WINDOWS_KEPT)} / {cells(analysis.WINDOWS)}"
    marked = f"{share} + {MARK} * (max by (x, y) ({recorded(analysis.IN_REGION)}))"
    expr = f'label_replace(label_replace({marked}, "batch", "$1", "y", "(.*)"), "rate", "$1", "x", "(.*)")'
    best = {
        "type": "range",
        "options": {"from": MARK, "to": MARK + 2, "result": {"text": "★ best", "color": BLUE}},
    }
    window, lookback = format_seconds(spec.analysis.window), format_seconds(spec.analysis.lookback)
    return Band(
        12,
        [
            matrix(
                "Batch size × request rate",
                f"Share of the {window} windows of the last {lookback} that kept every promise. Read it as: a row "
                "is a batch size (running requests per engine, from), a column a request rate (requests per second "
                "and engine, from); green kept the promises, red broke them, ★ is the best region, – was never seen.",
                SOURCE,
                expr,
                row="batch",
                column="rate",
                width=14,
                mappings=[best],
            ),
            heatmap(
                "Tokens per engine step",
                "How full each step's batch of tokens was.",
                SOURCE_ENGINE,
                buckets(engine.ITERATION_TOKENS),
                "none",
                width=10,
                exemplar=False,
                unit_words="tokens",
            ),
        ],
        "Where the promise is kept",
    )


def _now(spec: Spec) -> Band:
    waiting = spec.signal("waiting-requests").threshold
    return Band(
        8,
        [
            timeseries(
                "Batch size by engine",
                "Requests that run in each engine's batch.",
                SOURCE_ENGINE,
                [query(f"sum by (instance) ({of(engine.REQUESTS_RUNNING)})", "{{instance}}")],
                "none",
                width=8,
                many=True,
                unit_words="running requests",
            ),
            timeseries(
                "Waiting requests",
                "Requests that wait for a slot, with the median that the early signal judges.",
                SOURCE_RULES,
                [
                    query(f"sum({of(engine.REQUESTS_WAITING)})", "now"),
                    query(f"max({recorded(records.WAITING_MEDIAN)})", "median"),
                ],
                "none",
                width=8,
                colours=(SKY, ORANGE),
                limits=((waiting, RED),),
                unit_words="waiting requests",
            ),
            timeseries(
                "Preemptions",
                "Running requests thrown out to make room; their tokens are computed again.",
                SOURCE_ENGINE,
                [query(rate(engine.PREEMPTIONS_TOTAL, by="instance"), "{{instance}}")],
                "cps",
                width=8,
                many=True,
                limits=((spec.signal("preemptions").threshold, RED),),
            ),
        ],
        "Now",
    )


def _yield() -> Band:
    per_request = f"{rate(engine.GENERATION_TOKENS_TOTAL)} / sum({of(engine.REQUESTS_RUNNING)} > 0)"
    return Band(
        8,
        [
            timeseries(
                "Output tokens",
                "Tokens generated per second by all chosen engines.",
                SOURCE_ENGINE,
                [query(rate(engine.GENERATION_TOKENS_TOTAL), "all")],
                width=8,
                colours=(GREEN,),
                unit_words="tokens per second",
            ),
            timeseries(
                "Output tokens per running request",
                "What each request in the batch gets; it falls when the batch is too large.",
                SOURCE_ENGINE,
                [query(per_request, "per request")],
                width=8,
                colours=(PURPLE,),
                unit_words="tokens per second",
            ),
            _token_latency(),
        ],
        "What the batch brings and costs",
    )


def _token_latency() -> ModernPanel:
    return timeseries(
        "Inter-token latency",
        "Time between two streamed outputs; large batches make every step longer.",
        SOURCE_ENGINE,
        [query(quantile(q, engine.INTER_TOKEN_LATENCY_SECONDS), f"P{q * 100:g}") for q in (0.5, 0.95, 0.99)],
        "s",
        width=8,
        colours=(SKY, ORANGE, RED),
    )
