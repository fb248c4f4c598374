"""The KV cache page: is there room, and are prompts that share a beginning reused?"""

from dashboards.common import (
    SOURCE_ENGINE,
    SOURCE_RULES,
    annotations,
    buckets,
    of,
    rate,
    recorded,
    variables,
)
from dashboards.grids import heatmap, matrix
from dashboards.layout import Band, lay_out
from dashboards.panels import stat, timeseries
from dashboards.steps import bad_above, bad_below, states
from dashboards.style import GREEN, GREY, RED, SKY, Json, dashboard, query
from slo.duration import format_seconds
from slo.names import analysis, engine, records
from slo.names.dashboards import KV_CACHE_UID
from slo.spec import Spec

SOURCE = "exporters/analysis over recorded windows"


def build(spec: Spec) -> Json:
    """The KV cache page; the thresholds are the early signals of *spec*."""
    return dashboard(
        uid=KV_CACHE_UID,
        title="KV cache: is there room, and are prompts reused?",
        description="How full the KV cache is, how much of the prompts comes from it, and what length does to both.",
        panels=lay_out([_answer(spec), _grids(spec), _over_time(spec), _lengths()]),
        variables=variables(),
        annotations=annotations(),
        span="now-3h",
        tags=("kv-cache",),
    )


def _answer(spec: Spec) -> Band:
    hit, kv = spec.signal("prefix-cache-hit").threshold, spec.signal("kv-pressure").threshold
    return Band(
        5,
        [
            stat(
                "KV cache in use",
                f"The fullest engine's share of KV blocks held by live requests; over {kv:.0%} it preempts.",
                SOURCE_ENGINE,
                [query(f"max({of(engine.KV_CACHE_USAGE_RATIO)})")],
                "percentunit",
                steps=bad_above(kv),
                width=6,
                decimals=1,
            ),
            stat(
                "Prompt tokens found in the cache",
                f"Share of looked-up prompt tokens that were cached; under {hit:.0%} where prompts share prefixes, "
                "prefill is done again.",
                SOURCE_RULES,
                [query(f"min({recorded(records.PREFIX_CACHE_HIT)})")],
                "percentunit",
                steps=bad_below(hit),
                width=6,
                decimals=1,
                no_value="nothing looked up",
            ),
            stat(
                "Preemptions",
                "Running requests thrown out per second to make room.",
                SOURCE_ENGINE,
                [query(rate(engine.PREEMPTIONS_TOTAL))],
                "cps",
                steps=bad_above(spec.signal("preemptions").threshold),
                width=6,
                decimals=2,
            ),
            stat(
                "Capacity",
                "Tokens that the KV caches of all chosen engines can hold together.",
                SOURCE_ENGINE,
                [query(f"sum({of(engine.KV_CACHE_CAPACITY_TOKENS)})")],
                width=6,
                spark=False,
                unit_words="tokens",
            ),
        ],
    )


def _renamed(expr: str, x: str, y: str) -> str:
    return f'label_replace(label_replace({expr}, "{x}", "$1", "x", "(.*)"), "{y}", "$1", "y", "(.*)")'


def _cells(metric: str, grid: str, by: str = "x, y") -> str:
    chosen = recorded(metric, f'{analysis.LABEL_GRID}="{grid}"')
    return f"sum by ({by}) ({chosen})"


def _grids(spec: Spec) -> Band:
    kept = _cells(analysis.WINDOWS_KEPT, analysis.GRID_LENGTH_HIT)
    seen = _cells(analysis.WINDOWS, analysis.GRID_LENGTH_HIT)
    spread = _cells(analysis.WINDOWS, analysis.GRID_LENGTH_LATENCY)
    of_length = (
        f"{spread} / on (x) group_left () {_cells(analysis.WINDOWS, analysis.GRID_LENGTH_LATENCY, 'x')}"
    )
    window, lookback = format_seconds(spec.analysis.window), format_seconds(spec.analysis.lookback)
    return Band(
        12,
        [
            matrix(
                "KV hit rate × sequence length",
                f"Share of the {window} windows of the last {lookback} that kept every promise. Read it as: a row "
                "is the mean prompt length of the window (tokens, from), a column its share of prompt tokens found "
                "in the cache (from); green kept the promises, red broke them, – was never seen.",
                SOURCE,
                _renamed(f"{kept} / {seen}", "hit", "tokens"),
                row="tokens",
                column="hit",
                width=12,
            ),
            matrix(
                "Context length × latency",
                "How the latency of windows with one prompt length spreads. Read it as: a row is the mean prompt "
                "length (tokens, from), a column the P95 of the whole request (seconds, from); each row adds up "
                "to 100 %, darker is more windows.",
                SOURCE,
                _renamed(of_length, "tokens", "seconds"),
                row="tokens",
                column="seconds",
                width=12,
                colour="continuous-blues",
                mappings=states({0: ("·", "transparent")}),
            ),
        ],
        "What length does",
    )


def _over_time(spec: Spec) -> Band:
    hit, kv = spec.signal("prefix-cache-hit").threshold, spec.signal("kv-pressure").threshold
    return Band(
        8,
        [
            timeseries(
                "KV cache in use by engine",
                "Share of KV blocks held by live requests; cached prefixes count as free.",
                SOURCE_ENGINE,
                [query(f"max by (instance) ({of(engine.KV_CACHE_USAGE_RATIO)})", "{{instance}}")],
                "percentunit",
                width=8,
                maximum=1,
                limits=((kv, RED),),
                many=True,
            ),
            timeseries(
                "Prompt tokens found in the cache",
                "Hits over lookups, in tokens, as the early signal judges them; the line is its threshold.",
                SOURCE_RULES,
                [query(f"min by (model) ({recorded(records.PREFIX_CACHE_HIT)})", "{{model}}")],
                "percentunit",
                width=8,
                maximum=1,
                limits=((hit, RED),),
                many=True,
            ),
            timeseries(
                "Prompt tokens: cached and computed",
                "Where prompt tokens came from; what is not cached is computed again.",
                SOURCE_ENGINE,
                [
                    query(rate(engine.PREFIX_CACHE_HIT_TOKENS_TOTAL), "cached"),
                    query(
                        f"{rate(engine.PREFIX_CACHE_QUERIED_TOKENS_TOTAL)}"
                        f" - {rate(engine.PREFIX_CACHE_HIT_TOKENS_TOTAL)}",
                        "computed",
                    ),
                ],
                width=8,
                stack=True,
                colours=(GREEN, GREY),
                unit_words="tokens per second",
            ),
        ],
        "Over time",
    )


def _lengths() -> Band:
    reads = "Lengths of all finished requests, not only a mean:"
    return Band(
        8,
        [
            heatmap(
                "Prompt length",
                f"{reads} tokens in the prompt.",
                SOURCE_ENGINE,
                buckets(engine.REQUEST_PROMPT_TOKENS),
                "none",
                width=6,
                exemplar=False,
                unit_words="tokens",
            ),
            heatmap(
                "Answer length",
                f"{reads} tokens generated.",
                SOURCE_ENGINE,
                buckets(engine.REQUEST_GENERATION_TOKENS),
                "none",
                width=6,
                exemplar=False,
                unit_words="tokens",
            ),
            timeseries(
                "Cached prompt tokens by source",
                "Prompt tokens that were not computed again, by where they came from: this engine's cache or another's.",
                SOURCE_ENGINE,
                [query(rate(engine.PROMPT_TOKENS_CACHED_TOTAL, by="source"), "{{source}}")],
                "none",
                width=6,
                stack=True,
                many=True,
                unit_words="tokens per second",
            ),
            timeseries(
                "Preemptions",
                "Running requests thrown out to make room, by engine.",
                SOURCE_ENGINE,
                [query(rate(engine.PREEMPTIONS_TOTAL, by="instance"), "{{instance}}")],
                "cps",
                width=6,
                many=True,
                colours=(SKY,),
            ),
        ],
        "Lengths",
    )
