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
    "{{ range $n, $cell := . }}{{ if $n }}; {{ end }}{{ $cell.Labels.sli }}: latency {{ $cell.Labels.band }}, "
    "drift {{ $cell.Labels.drift }}{{ end }}"
)
LIVE = (
    f"{{{{ with printf `{names.LEVEL}{{service=%q}} >= 2` $labels.service | query }}}} ({_EACH}){{{{ end }}}}"
)
"""` (request_duration: latency much_slower, drift yes)`: the live cells when the alert fires."""
RISES = (
    f"{{{{ with printf `{names.RISE}{{service=%q}}` $labels.service | query }}}}{{{{ range . }}}} "
    "{{ .Labels.sli }} is {{ printf `%.2f` .Value }} × its baseline ({{ .Labels.baseline }}).{{ end }}{{ end }}"
)


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

    Where the latency budget's page was there first, the critical cell only warns: its page silences the budget's,
    but none takes back a page that was sent. Which of both was first is read from ALERTS.
    """
    joint, quantile = scope.spec.joint, f"P{scope.spec.joint.latency_quantile * 100:g}"
    live = {
        level: f"max by (service) ({scope.recorded(names.LEVEL, _level(level))}) == {LEVELS[level]}"
        for level in ("warn", "critical")
    }
    paged = promql(
        f"({_firing(scope, alerts.LATENCY_BURN_FAST)}"
        f"\nunless on (service) {_firing(scope, alerts.JOINT_CRITICAL)})"
    )
    told = (
        f"Live cells{LIVE}.{RISES} The table stands in slo.yaml (joint); levels are of {quantile} over its baseline "
        "and the state of embedding drift, and the baseline stands still while this fires."
    )
    return (
        Alert(
            alerts.JOINT_CRITICAL,
            promql(f"{live['critical']}\nunless on (service) {paged}"),
            "page",
            "{{ $labels.service }}: latency is far over its baseline while embeddings drift",
            told,
            for_seconds=joint.for_,
            labels=scope.labels,
            links=links(scope.spec, alerts.JOINT_CRITICAL, "drift"),
        ),
        Alert(
            alerts.JOINT_WARN,
            promql(
                f"{live['warn']}\nunless on () ({live['critical']})"
                f"\nor ({live['critical']}\nand on (service) {paged})"
            ),
            "warning",
            f"{{{{ $labels.service }}}}: latency rises over its baseline, or embeddings drift{LIVE}",
            f"{told} A critical cell is a warning here while {alerts.LATENCY_BURN_FAST}, which came first, pages.",
            for_seconds=joint.warn_for,
            labels=scope.labels,
            links=links(scope.spec, alerts.JOINT_WARN, "drift"),
        ),
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
            "A new baseline is needed: nothing is judged until the reference is replaced on purpose with "
            "`inferwatch drift fit`. Was the swap meant, and was the index built anew with it? Vectors of two models "
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
            f"Vectors came within {span(drift.window)}, but for {span(unknown.for_)} there was no reference or fewer "
            f"than {drift.min_samples} of them. Whether they drift is unknown, which is not the same as no.",
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
        "They are zero, NaN, infinite, empty or of another dimension than their stream; the exporter's "
        f"{names.REJECTED} says which. Wanted is under {percent(limit.above_ratio)} over {span(limit.window)}. "
        "What is stored of them in an index is never found, or found for everything.",
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
        f"They were empty, or their best similarity was under {health.low_score:g}; wanted are fewer than "
        f"{percent(health.above_ratio)} over {span(health.window)}. Answers are then made up rather than looked up.",
        for_seconds=health.for_,
        labels=scope.labels,
        links=links(scope.spec, alerts.RETRIEVAL_POOR, "drift"),
    )


def _firing(scope: Scope, alert: str) -> str:
    return scope.recorded("ALERTS", f'alertname="{alert}"', 'alertstate="firing"', 'severity="page"')


def _level(level: str) -> str:
    return f'{names.LABEL_LEVEL}="{level}"'
