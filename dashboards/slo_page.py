"""The SLO overview: are we keeping our promise, and if not, since when and for whom?"""

from dashboards.common import SOURCE_RULES, annotations, recorded, variables
from dashboards.grids import heatmap, table
from dashboards.layout import Band, lay_out
from dashboards.panels import stat, state_timeline, timeseries
from dashboards.steps import bad_above, bad_below, states
from dashboards.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, Json, ModernPanel, dashboard, query
from slo import burn
from slo.duration import format_seconds
from slo.names import records
from slo.names.dashboards import SLO_UID
from slo.spec import Spec

QUANTILES = (("0.5", "P50", SKY), ("0.95", "P95", ORANGE), ("0.99", "P99", RED), ("0.999", "P99.9", PURPLE))
FIRING = 'ALERTS{alertstate="firing",severity=~"page|ticket|warning",service=~"$service"}'
BY_SLO = "sloth_slo"


def build(spec: Spec) -> Json:
    """The SLO overview; objectives, thresholds and burn factors come from *spec*."""
    return dashboard(
        uid=SLO_UID,
        title="SLO overview: are we keeping our promise?",
        description="Promises of slo.yaml, how much of each error budget is left, and what breaks them.",
        panels=lay_out([_answer(spec), _budgets(spec), _latency(spec), _distributions(), _traffic()]),
        variables=variables(),
        annotations=annotations(),
        span="now-6h",
        tags=("slo",),
    )


def _short_window(spec: Spec) -> str:
    return format_seconds(min(w.short for w in spec.budget.windows))


def _answer(spec: Spec) -> Band:
    short = _short_window(spec)
    kept = f"min by ({BY_SLO}) ({recorded(records.CURRENT_BURN_RATE)} <= bool 1)"
    return Band(
        6,
        [
            stat(
                "Is each promise kept now?",
                f"Whether the last {short} stayed within what the objective allows, for the worst model.",
                SOURCE_RULES,
                [query(kept, "{{sloth_slo}}")],
                "none",
                steps=((None, RED), (1, GREEN)),
                mappings=states({0: ("broken", RED), 1: ("kept", GREEN)}),
                width=10,
                spark=False,
                text="value_and_name",
                unit_words="a state by name",
                no_value="no traffic",
            ),
            stat(
                "Error budget left",
                f"Share of the {spec.budget.period_days}-day budget that is still to be spent, for the worst model.",
                SOURCE_RULES,
                [query(f"min by ({BY_SLO}) ({recorded(records.BUDGET_REMAINING)})", "{{sloth_slo}}")],
                "percentunit",
                steps=bad_below(0, spec.budget.low_budget_ratio),
                width=10,
                decimals=1,
                text="value_and_name",
                no_value="not enough history yet",
            ),
            stat(
                "Alerts firing",
                "Alerts that fire now, by severity.",
                "ALERTS of Prometheus",
                [query(f"count by (severity) ({FIRING})", "{{severity}}", instant=True)],
                "none",
                steps=bad_above(1),
                width=4,
                spark=False,
                no_value="none",
                text="value_and_name",
                unit_words="alerts",
            ),
        ],
    )


def _budgets(spec: Spec) -> Band:
    pages = [w for w in spec.budget.windows if w.severity == "page"]
    tickets = [w for w in spec.budget.windows if w.severity == "ticket"]
    limits = tuple(
        (burn.factor(window, spec.budget.period_days), colour)
        for window, colour in (
            (min(tickets, key=lambda w: burn.factor(w, spec.budget.period_days)), ORANGE),
            (min(pages, key=lambda w: burn.factor(w, spec.budget.period_days)), RED),
        )
    )
    short = _short_window(spec)
    return Band(
        8,
        [
            timeseries(
                "Burn rate",
                "How many times faster than allowed each budget is spent; 1 lasts exactly the period. "
                "Lines: where a ticket and where a page begin.",
                SOURCE_RULES,
                [query(f"max by ({BY_SLO}) ({recorded(records.CURRENT_BURN_RATE)})", "{{sloth_slo}}")],
                "none",
                width=8,
                limits=limits,
                many=True,
                unit_words="times the allowed rate",
            ),
            timeseries(
                "Share of requests that broke a promise",
                f"Bad events over all events in the last {short}, for the worst model.",
                SOURCE_RULES,
                [query(f"max by ({BY_SLO}) ({recorded(records.error_ratio(short))})", "{{sloth_slo}}")],
                "percentunit",
                width=8,
                many=True,
            ),
            timeseries(
                "Error budget left over time",
                "What is left of each budget; it falls when promises are broken and recovers as old faults "
                "leave the period.",
                SOURCE_RULES,
                [query(f"min by ({BY_SLO}) ({recorded(records.BUDGET_REMAINING)})", "{{sloth_slo}}")],
                "percentunit",
                width=8,
                minimum=None,
                maximum=1,
                limits=((spec.budget.low_budget_ratio, ORANGE),),
                many=True,
            ),
        ],
        "Why: budgets and how fast they burn",
    )


def _quantiles(spec: Spec, sli: str, title: str, what: str) -> ModernPanel:
    promised = [
        (s.threshold_seconds, s.objective)
        for service in spec.services
        for s in service.slos
        if s.sli == sli and s.threshold_seconds is not None
    ]
    words = " and ".join(
        f"{objective:.4g} within {bound:g} s" for bound, objective in dict.fromkeys(promised)
    )

    def of(q: str) -> str:
        chosen = recorded(records.LATENCY_QUANTILE, f'sli="{sli}",quantile="{q}"')
        return f"max({chosen})"

    return timeseries(
        title,
        f"{what} at the median and in the tail over 5 m. The line is the promise: {words or 'none is set'}.",
        SOURCE_RULES,
        [query(of(q), name) for q, name, _ in QUANTILES],
        "s",
        width=8,
        colours=[colour for _, _, colour in QUANTILES],
        limits=tuple((bound, RED) for bound, _ in dict.fromkeys(promised)),
    )


def _latency(spec: Spec) -> Band:
    return Band(
        8,
        [
            _quantiles(spec, "request_duration", "Whole request", "Time from arrival to the last token"),
            _quantiles(spec, "time_to_first_token", "Time to first token", "Time from arrival to the first token"),
            _quantiles(spec, "time_per_output_token", "Time per output token", "Mean time between tokens of a request"),
        ],
        "Latency against the promise",
    )  # fmt: skip


def _distributions() -> Band:
    def of(sli: str) -> str:
        chosen = recorded(records.LATENCY_BUCKET, f'sli="{sli}"')
        return f"sum by (le) ({chosen})"

    return Band(
        8,
        [
            heatmap(
                title,
                f"All requests' {what}, as observations per second.",
                SOURCE_RULES,
                of(sli),
                exemplar=False,
                width=12,
            )
            for sli, title, what in (
                ("request_duration", "Whole request, all of them", "time to the last token"),
                ("time_to_first_token", "Time to first token, all of them", "time to the first token"),
            )
        ],
    )


def _traffic() -> Band:
    return Band(
        7,
        [
            timeseries(
                "Requests: answered, failed, unserved",
                "Answered requests, failures counted once, and requests that found nothing to serve them.",
                SOURCE_RULES,
                [
                    query(f"sum({recorded(records.REQUESTS)})", "answered"),
                    query(f"sum({recorded(records.FAILURES)})", "failed"),
                    query(f"sum({recorded(records.UNSERVED_REQUESTS)})", "unserved"),
                ],
                "reqps",
                width=8,
                colours=(SKY, RED, PURPLE),
            ),
            state_timeline(
                "Can each model be served?",
                "Whether at least one engine can serve the model; it is unserved while all are down or hung.",
                SOURCE_RULES,
                [query(f"max by (service, model) ({recorded(records.UNSERVED)})", "{{service}} {{model}}")],
                states({0: ("served", GREEN), 1: ("unserved", RED)}),
                width=8,
                unit_words="a state by name",
            ),
            table(
                "Alerts that fire now",
                "Every alert that fires for the chosen services.",
                "ALERTS of Prometheus",
                [query(f"max by (alertname, severity, instance, model) ({FIRING})", instant=True, format="table")],
                width=8,
                unit_words="names",
                overrides=[
                    {
                        "matcher": {"id": "byName", "options": "Severity"},
                        "properties": [
                            {"id": "custom.cellOptions", "value": {"type": "color-text"}},
                            {"id": "mappings", "value": _severities()},
                        ],
                    }
                ],
                transformations=[
                    {
                        "id": "organize",
                        "options": {
                            "excludeByName": {"Time": True, "Value": True},
                            "indexByName": {"alertname": 0, "severity": 1, "instance": 2, "model": 3},
                            "renameByName": {"alertname": "Alert", "severity": "Severity", "instance": "Instance",
                                             "model": "Model"},
                        },
                    }
                ],
            ),
        ],
        "Traffic and what fires",
    )  # fmt: skip


def _severities() -> list[Json]:
    colours = {"page": RED, "ticket": ORANGE, "warning": BLUE, "none": GREY}
    options = {
        name: {"text": name, "color": colour, "index": i} for i, (name, colour) in enumerate(colours.items())
    }
    return [{"type": "value", "options": options}]
