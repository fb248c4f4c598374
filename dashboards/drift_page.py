"""The Drift × latency page: did what is asked change, and did it get slower?"""

from dashboards.common import annotations, variables
from dashboards.grids import heatmap, matrix
from dashboards.layout import Band, lay_out
from dashboards.panels import scatter, stat, state_timeline, timeseries
from dashboards.steps import bad_above, states
from dashboards.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, Json, dashboard, query
from slo.duration import format_seconds
from slo.names import drift
from slo.names.dashboards import DRIFT_UID
from slo.signals import Band as LatencyBand
from slo.spec import Spec

SOURCE = "exporters/drift"
SOURCE_JOINT = "recording rules of alerts/ over latency and drift"
SERVICE = 'service=~"$service"'
STREAM = 'service=~"$service",model=~"$model"'
RATE = "$__rate_interval"
LEVELS = {0: ("ok", GREEN), 1: ("info", BLUE), 2: ("warn", ORANGE), 3: ("critical", RED)}
HERE = 10
"""Added to a cell's level where the service is now."""


def build(spec: Spec) -> Json:
    """The Drift × latency page; the table and its bands come from *spec*."""
    return dashboard(
        uid=DRIFT_UID,
        title="Drift × latency: did what is asked change, and did it get slower?",
        description="Embeddings held against a reference of healthy ones, beside the latency they cause.",
        panels=lay_out([_answer(spec), _table(spec), _together(spec), _drift(spec), _retrieval()]),
        variables=variables(),
        annotations=annotations(),
        span="now-6h",
        tags=("drift",),
    )


def _of(metric: str, more: str = "", labels: str = STREAM) -> str:
    return f"{metric}{{{more + ',' if more else ''}{labels}}}"


def _answer(spec: Spec) -> Band:
    bands = spec.joint.latency_bands
    first, second = (bands[0].up_to_ratio or 0.0), (bands[1].up_to_ratio or bands[0].up_to_ratio or 0.0)
    quantile = f"P{spec.joint.latency_quantile * 100:g}"
    numbered = {"no": (0, GREEN), "yes": (1, RED), "unknown": (2, GREY), "swapped": (3, PURPLE)}
    state = " or ".join(
        f"{number} * max({_of(drift.SERVICE_DRIFT, f'drift=@{name}@', SERVICE)} == 1)".replace("@", '"')
        for name, (number, _) in numbered.items()
    )
    return Band(
        5,
        [
            stat(
                "Level now",
                "What the table of latency and drift makes of both together, for the worst service.",
                SOURCE_JOINT,
                [query(f"max({_of(drift.LEVEL, labels=SERVICE)})")],
                "none",
                steps=((None, GREEN), (1, BLUE), (2, ORANGE), (3, RED)),
                mappings=states(LEVELS),
                width=6,
                spark=False,
                unit_words="a level by name",
                no_value="not judged yet",
            ),
            stat(
                "Drift",
                "Whether what is asked still looks like the reference; unknown is not no.",
                SOURCE_JOINT,
                [query(state)],
                "none",
                mappings=states({number: (name, colour) for name, (number, colour) in numbered.items()}),
                width=6,
                spark=False,
                unit_words="a state by name",
                no_value="not judged yet",
            ),
            stat(
                f"{quantile} over its baseline",
                f"How much slower than its baseline; bands begin at {first:.0%} and {second:.0%}.",
                SOURCE_JOINT,
                [query(f"max({_of(drift.RISE, labels=SERVICE)}) - 1")],
                "percentunit",
                steps=((None, GREEN), (first, ORANGE), (second, RED)),
                width=6,
                decimals=0,
                maximum=1000,
                no_value="not judged yet",
            ),
            stat(
                "Worst detector",
                "The detector nearest to or furthest over its calibrated threshold; over 1 is drift.",
                SOURCE,
                [query(f"max({_of(drift.RATIO)})")],
                "none",
                steps=bad_above(1),
                width=6,
                decimals=2,
                unit_words="share of the way to the threshold",
                no_value="not judged yet",
            ),
        ],
    )


def _band_words(bands: tuple[LatencyBand, ...]) -> list[tuple[str, str]]:
    """(id, what it says): "1 · up to 20 %", "2 · up to 50 %", "3 · more"; they sort as they rise."""
    return [
        (one.id, f"{n} · up to {one.up_to_ratio:.0%}" if one.up_to_ratio is not None else f"{n} · more")
        for n, one in enumerate(bands, 1)
    ]


def _cells(spec: Spec) -> str:
    """One sample a cell of the joint table: its level, raised where the service is now."""
    numbers = {name: number for number, (name, _) in LEVELS.items()}
    cells = []
    for band, words in _band_words(spec.joint.latency_bands):
        for state, level in sorted(spec.joint.cells[band].items()):
            live = _of(drift.LEVEL, f'{drift.LABEL_BAND}="{band}",{drift.LABEL_DRIFT}="{state}"', SERVICE)
            value = f"{numbers[level]} + {HERE} * (count({live}) > bool 0 or vector(0))"
            cells.append(
                f'label_replace(label_replace({value}, "slower", "{words}", "", ""), "drift", "{state}", "", "")'
            )
    return " or ".join(cells)


def _table(spec: Spec) -> Band:
    here = {n + HERE: (f"▶ {name}", colour) for n, (name, colour) in LEVELS.items()}
    quantile = f"P{spec.joint.latency_quantile * 100:g}"
    latency, baseline = _of(drift.LATENCY, labels=SERVICE), _of(drift.BASELINE, labels=SERVICE)
    return Band(
        8,
        [
            matrix(
                "Latency × drift",
                "Which level each pair of latency and drift has. Read it as: a row is how much slower than its "
                "baseline, a column the state of drift; ▶ is where the services are now.",
                "slo.yaml, joint; the mark from recording rules",
                _cells(spec),
                row="slower",
                column="drift",
                width=12,
                unit="none",
                colour="thresholds",
                numeric=False,
                mappings=states({**LEVELS, **here}),
                unit_words="levels by name",
            ),
            timeseries(
                f"{quantile} and its baseline",
                f"The latency that is judged, and what it is held against: {spec.joint.baseline}.",
                SOURCE_JOINT,
                [query(f"max by (sli) ({latency})", "{{sli}}"), query(f"max by (sli) ({baseline})", "{{sli}} baseline")],
                "s",
                width=12,
                many=True,
            ),
        ],
        "Both together",
    )  # fmt: skip


def _together(spec: Spec) -> Band:
    """Both as multiples of what is normal, so that one axis fits them."""
    latency = query(f"max({_of(drift.RISE, labels=SERVICE)})", "latency over its baseline")
    worst = query(f"max({_of(drift.RATIO)})", "worst detector, 1 at its threshold")
    border = 1 + (spec.joint.latency_bands[0].up_to_ratio or 0.0)
    return Band(
        8,
        [
            timeseries(
                "Latency and drift on one time axis",
                "The judged latency as a multiple of its baseline, and the worst detector as a multiple of its "
                f"threshold: which rose first? Latency leaves its band over {border:g}, drift begins over 1.",
                f"{SOURCE_JOINT}; {SOURCE}",
                [latency, worst],
                "none",
                width=16,
                colours=(SKY, ORANGE),
                limits=((1, GREY),),
                unit_words="times the baseline or threshold",
            ),
            scatter(
                "Latency against drift",
                "One point a moment. Read it as: right is slower, up is more drift; an incident of both leaves "
                "along the diagonal.",
                f"{SOURCE_JOINT}; {SOURCE}",
                query(latency.expr, latency.legendFormat),
                query(worst.expr, worst.legendFormat),
                width=8,
                unit_words="times the baseline, times the threshold",
            ),
        ],
    )


def _drift(spec: Spec) -> Band:
    found = {
        "no": (0, GREEN),
        "yes": (1, RED),
        "insufficient": (2, GREY),
        "no_reference": (3, GREY),
        "swapped": (4, PURPLE),
    }
    state = " or ".join(
        f"{number} * max by (model, version, tenant) ({_of(drift.STATE, f'state=@{name}@')} == 1)".replace(
            "@", '"'
        )
        for name, (number, _) in found.items()
    )
    window = format_seconds(spec.drift.window)
    return Band(
        8,
        [
            state_timeline(
                "Drift of each stream",
                f"Whether the last {window} of each model, version and tenant drifted from the reference.",
                SOURCE,
                [query(state, "{{model}} {{version}} {{tenant}}")],
                states({number: (name.replace("_", " "), colour) for name, (number, colour) in found.items()}),
                width=8,
                unit_words="a state by name",
            ),
            timeseries(
                "Detectors over their thresholds",
                "Each detector's score as a multiple of its calibrated threshold; over 1 is drift.",
                SOURCE,
                [
                    query(
                        f"max by (detector) ({_of(drift.SCORE)} / {_of(drift.THRESHOLD)})",
                        "{{detector}}",
                    )
                ],
                "none",
                width=8,
                many=True,
                limits=((1, RED),),
                unit_words="times the threshold",
            ),
            timeseries(
                "Vectors: accepted and refused",
                f"Embeddings that arrived, and those refused with their reason; under {spec.drift.min_samples} in "
                f"{window} nothing is judged.",
                SOURCE,
                [
                    query(f"sum(rate({_of(drift.ACCEPTED)}[{RATE}]))", "accepted"),
                    query(f"sum by (reason) (rate({_of(drift.REJECTED, labels=SERVICE)}[{RATE}])) > 0", "{{reason}}"),
                ],
                "cps",
                width=8,
                many=True,
                colours=(SKY,),
            ),
        ],
        "Drift",
    )  # fmt: skip


def _retrieval() -> Band:
    def cells(histogram: str) -> str:
        return f"sum by (le) (increase({_of(histogram + '_bucket', labels=SERVICE)}[{RATE}]))"

    results = f"sum by (result) (rate({_of(drift.RETRIEVALS, labels=SERVICE)}[{RATE}]))"
    return Band(
        8,
        [
            timeseries(
                "Retrievals by result",
                "Retrievals that found something good, only something poor, or nothing.",
                f"{SOURCE}, as the client tells it",
                [query(results, "{{result}}")],
                "reqps",
                width=8,
                stack=True,
                many=True,
            ),
            heatmap(
                "Best similarity of each retrieval",
                "How near the best document was; a fall shows that questions moved away from the documents.",
                f"{SOURCE}, as the client tells it",
                cells(drift.RETRIEVAL_TOP_SCORE),
                "none",
                width=8,
                exemplar=False,
                unit_words="similarity",
            ),
            heatmap(
                "Retrieval time",
                "How long each retrieval took.",
                f"{SOURCE}, as the client tells it",
                cells(drift.RETRIEVAL_SECONDS),
                width=8,
                exemplar=False,
            ),
        ],
        "Retrieval",
    )
