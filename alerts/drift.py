"""The joint table's live cell and the drift exporter's own series -> alerts; one page at most an incident."""

from alerts.joint import LEVELS, joint_records
from alerts.promql import promql, window
from alerts.rule import Alert, Group, Record
from alerts.scope import Scope
from alerts.texts import links, percent, span
from slo.names import alerts
from slo.names import drift as names

STREAM = "(service, model, version, tenant)"
WHOSE = "{{ $labels.service }}: embeddings of {{ $labels.model }}{{ with $labels.tenant }} (tenant {{ . }}){{ end }}"

_EACH = (
    "{{ range $n, $cell := . }}{{ if $n }}; {{ end }}{{ $cell.Labels.sli }}"
    "{{ with $cell.Labels.model }} of {{ . }}{{ end }}: latency {{ $cell.Labels.band }}, "
    "drift {{ $cell.Labels.drift }}{{ end }}"
)
LIVE = (
    f"{{{{ with printf `{names.LEVEL}{{service=%q}} >= 2` $labels.service | query }}}} ({_EACH}){{{{ end }}}}"
)
"""` (request_duration of m: latency much_slower, drift yes)`: the service's live cells when the alert fires."""
_RISES = (
    "{{ range . }} {{ .Labels.sli }}{{ with .Labels.model }} of {{ . }}{{ end }} is "
    "{{ printf `%.2f` .Value }} × its baseline ({{ .Labels.baseline }}).{{ end }}{{ end }}"
)
RISES = f"{{{{ with printf `{names.RISE}{{service=%q}}` $labels.service | query }}}}{_RISES}"
OWN_RISES = f"{{{{ with printf `{names.RISE}{{service=%q,model=%q}}` $labels.service $labels.model | query }}}}{_RISES}"
"""The rises of the alert's own model; where it has none, those of what is of no model."""


def drift_groups(scope: Scope) -> tuple[Group, ...]:
    """Return the group of one service; evaluated as slowly as the quantiles that it reads."""
    return (
        Group(
            f"drift-{scope.service.id}",
            scope.spec.intervals.slow_evaluation_seconds,
            (
                *joint_records(scope),
                _retrieval_record(scope),
                *_joint_alerts(scope),
                *_stream_alerts(scope),
                _retrieval_alert(scope),
            ),
        ),
    )


def _joint_alerts(scope: Scope) -> tuple[Alert, Alert]:
    """
    The page and the warning of the table.

    A page is of the model whose latency it is; drift is of the service, so that it warns once. Where the latency
    budget's page was there first, the critical cell only warns: its page silences the budget's, but none takes back a
    page that was sent. Which of both was first is read from ALERTS.
    """
    joint, quantile = scope.spec.joint, f"P{scope.spec.joint.latency_quantile * 100:g}"
    critical, paged = _critical(scope), _paged(scope)
    steady = joint.latency_bands[0].up_to_ratio
    wanted = (
        f"Wanted: {quantile} at most {percent(steady or 0)} over its baseline, and no drift; which cell warns or pages "
        "stands in slo.yaml (joint). The baseline stands still while this fires."
    )
    return (
        Alert(
            alerts.JOINT_CRITICAL,
            promql(f"({critical})\nunless on (service, model) ({paged})"),
            "page",
            "{{ $labels.service }}{{ with $labels.model }} / {{ . }}{{ end }}: latency is far over its baseline while "
            "embeddings drift",
            f"Now:{OWN_RISES} {wanted} Live cells of the service{LIVE}.",
            for_seconds=joint.for_,
            labels=scope.labels,
            links=links(scope.spec, alerts.JOINT_CRITICAL, "joint"),
        ),
        Alert(
            alerts.JOINT_WARN,
            promql(
                f"{_live(scope, 'warn')}\nunless on () ({_live(scope, 'critical')})"
                f"\nor max by (service) (({critical})\nand on (service, model) ({paged}))"
            ),
            "warning",
            f"{{{{ $labels.service }}}}: latency rises over its baseline, or embeddings drift{LIVE}",
            f"Now:{RISES} {wanted} A critical cell is a warning here while {alerts.LATENCY_BURN_FAST}, which came "
            "first, pages.",
            for_seconds=joint.warn_for,
            labels=scope.labels,
            links=links(scope.spec, alerts.JOINT_WARN, "joint"),
        ),
    )


def _live(scope: Scope, level: str, *matchers: str, by: str = "service") -> str:
    return f"max by ({by}) ({scope.recorded(names.LEVEL, _level(level), *matchers)}) == {LEVELS[level]}"


def _critical(scope: Scope) -> str:
    """Critical cells by model. One of no model (retrieval) pages for all of them, where none of theirs was first."""
    first = scope.recorded("ALERTS", f'alertname="{alerts.JOINT_CRITICAL}"', 'model=""')
    of_models = _live(scope, "critical", 'model!=""', by="service, model")
    of_none = _live(scope, "critical", 'model=""')
    return promql(f"({of_models}\nunless on (service) {first})\nor on (service) ({of_none})")


def _paged(scope: Scope) -> str:
    """The models whose latency budget pages and whose critical cell does not; with any of them, the whole service."""
    budget = _firing(scope, alerts.LATENCY_BURN_FAST)
    return promql(
        f"(group by (service, model) ({budget})\nor group by (service) ({budget}))"
        f"\nunless on (service, model) {_firing(scope, alerts.JOINT_CRITICAL)}"
    )


def _stream_alerts(scope: Scope) -> tuple[Alert, ...]:
    drift = scope.spec.drift
    unknown, over = drift.unknown, window(drift.window)
    quiet = f"sum by {STREAM} (increase({scope.raw(names.ACCEPTED)}{over})) > 0"
    states = scope.raw(names.STATE, 'state=~"insufficient|no_reference"')
    return (
        Alert(
            alerts.MODEL_SWAPPED,
            f"max by (service, model, version, tenant, reason) ({scope.raw(names.SWAP_INFO)}) == 1",
            "ticket",
            f"{WHOSE} are of another model than the reference ({{{{ $labels.reason }}}})",
            f"Now: another {{{{ $labels.reason }}}} for over {span(drift.swapped.for_)}. Wanted: the model and dimension of "
            "the reference. A new baseline is needed: nothing is judged until the reference is replaced on purpose "
            "with `inferwatch drift fit`. Was the swap meant, and was the index built anew with it? Vectors of two models "
            "in one index give senseless retrievals.",
            for_seconds=drift.swapped.for_,
            labels=scope.labels,
            links=links(scope.spec, alerts.MODEL_SWAPPED, "drift"),
        ),
        Alert(
            alerts.DRIFT_UNKNOWN,
            promql(f"max by {STREAM} ({states}) == 1\nand on {STREAM} ({quiet})"),
            "warning",
            f"{WHOSE} cannot be judged",
            f"Now: unknown for over {span(unknown.for_)}, though vectors came within {span(drift.window)}. Wanted: a "
            f"reference and at least {drift.min_samples} vectors in {span(drift.window)}. Whether they drift is unknown, "
            "which is not the same as no.",
            for_seconds=unknown.for_,
            labels=scope.labels,
            links=links(scope.spec, alerts.DRIFT_UNKNOWN, "drift"),
        ),
        _rejected(scope),
    )


def _rejected(scope: Scope) -> Alert:
    limit = scope.spec.drift.rejected
    over = window(limit.window)
    refused = f"sum by (service, model) (increase({scope.raw(names.REJECTED)}{over}))"
    taken = f"sum by (service, model) (increase({scope.raw(names.ACCEPTED)}{over}))"
    every = f"({refused} + {taken} or {refused})"
    return Alert(
        alerts.VECTORS_REJECTED,
        promql(f"{refused} / ({every} > 0) > {limit.above_ratio:g}\nand {every} >= {limit.min_vectors}"),
        "ticket",
        "{{ $labels.service }}: {{ $value | humanizePercentage }} of the embeddings of {{ $labels.model }} are unusable",
        f"Now: {{{{ $value | humanizePercentage }}}} over {span(limit.window)}. Wanted: at most "
        f"{percent(limit.above_ratio)}. They are zero, NaN, infinite, empty or of another dimension than their stream; "
        f"the exporter's {names.REJECTED} says which. What is stored of them in an index is never found, or found for everything.",
        for_seconds=limit.for_,
        labels=scope.labels,
        links=links(scope.spec, alerts.VECTORS_REJECTED, "drift"),
    )


def _retrieval_record(scope: Scope) -> Record:
    health = scope.spec.drift.retrieval
    over = window(health.window)
    poor = scope.raw(names.RETRIEVALS, 'result=~"empty|low_score"')
    return Record(
        names.RETRIEVAL_BAD,
        f"sum(increase({poor}{over}))\n/ (sum(increase({scope.raw(names.RETRIEVALS)}{over})) >= {health.min_retrievals})",
        scope.labels,
    )


def _retrieval_alert(scope: Scope) -> Alert:
    health = scope.spec.drift.retrieval
    return Alert(
        alerts.RETRIEVAL_POOR,
        f"{scope.recorded(names.RETRIEVAL_BAD)} > {health.above_ratio:g}",
        "warning",
        "{{ $labels.service }}: {{ $value | humanizePercentage }} of retrievals find nothing good",
        f"Now: {{{{ $value | humanizePercentage }}}} over {span(health.window)} were empty or had a best similarity under "
        f"{health.low_score:g}. Wanted: at most {percent(health.above_ratio)}. Answers are then made up rather than looked up.",
        for_seconds=health.for_,
        labels=scope.labels,
        links=links(scope.spec, alerts.RETRIEVAL_POOR, "drift"),
    )


def _firing(scope: Scope, alert: str) -> str:
    return scope.recorded("ALERTS", f'alertname="{alert}"', 'alertstate="firing"', 'severity="page"')


def _level(level: str) -> str:
    return f'{names.LABEL_LEVEL}="{level}"'
