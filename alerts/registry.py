"""slo.yaml -> every rule group, in the order of evaluation; the literal list of what is generated."""

from alerts.burn_alerts import budget_alerts, burn_alerts
from alerts.doubts import doubt_alerts, doubt_records
from alerts.drift import drift_groups
from alerts.events import HISTOGRAMS, request_records, sli_records
from alerts.instances import instance_records
from alerts.node import node_groups
from alerts.quantiles import bound_records, bucket_records, quantile_records
from alerts.rag import rag_groups
from alerts.rule import Alert, Group, Record
from alerts.scope import Scope
from alerts.signals import signal_alerts, signal_records, throughput_alerts
from alerts.stack_alerts import quick_stack_alerts, slow_stack_alerts
from alerts.states import failing_alerts, failing_records, state_alerts, target_alerts, target_records
from alerts.windows import period_events, period_records, promise_records, quick_records, resampled_records
from slo.objectives import Slo
from slo.spec import Spec


def service_groups(scope: Scope) -> tuple[Group, ...]:
    """Return the groups of one service.

    `states` and `base`, which reads them, are what pages are made of, with a group of its own for each
    promise of latency; `latency` and `signals`, with doubts and targets beside them, may be slower;
    `windows` sums long ones, from what `period` records for the longest. `bounds` and `buckets` read every
    bucket of every engine: a group for each stage. So none takes a second for a thousand engines; what one
    group reads of another is up to an evaluation old, and as late as that one takes.
    """
    intervals, name = scope.spec.intervals, scope.service.id
    slow = intervals.slow_evaluation_seconds
    answered = [slo for slo in scope.service.slos if slo.kind == "availability"]
    return (
        Group(
            f"{name}-states",
            intervals.evaluation_seconds,
            (*instance_records(scope), *state_alerts(scope)),
        ),
        Group(
            f"{name}-base",
            intervals.evaluation_seconds,
            (
                *request_records(scope),
                *(record for slo in answered for record in _judged(scope, slo)),
                *failing_records(scope),
                *failing_alerts(scope),
                *(alert for slo in answered for alert in burn_alerts(scope, slo, "page")),
            ),
        ),
        *(
            Group(
                f"{name}-base-{slo.id}",
                intervals.evaluation_seconds,
                (*_judged(scope, slo), *burn_alerts(scope, slo, "page")),
            )
            for slo in scope.service.slos
            if slo not in answered
        ),
        Group(
            f"{name}-windows",
            intervals.resample_seconds,
            (
                *resampled_records(scope),
                *promise_records(scope),
                *period_records(scope),
                *(alert for slo in scope.service.slos for alert in burn_alerts(scope, slo, "ticket")),
                *budget_alerts(scope),
            ),
        ),
        *(
            Group(f"{name}-bounds-{sli}", intervals.resample_seconds, bound_records(scope, sli))
            for sli in HISTOGRAMS
        ),
        Group(f"{name}-period", intervals.period_resample_seconds, period_events(scope)),
        *(Group(f"{name}-buckets-{sli}", slow, bucket_records(scope, sli)) for sli in HISTOGRAMS),
        Group(f"{name}-latency", slow, quantile_records(scope)),
        Group(f"{name}-signals-doubts", slow, (*doubt_records(scope), *doubt_alerts(scope))),
        Group(f"{name}-signals-targets", slow, (*target_records(scope), *target_alerts(scope))),
        Group(
            f"{name}-signals",
            slow,
            (*signal_records(scope), *signal_alerts(scope), *throughput_alerts(scope)),
        ),
    )


def _judged(scope: Scope, slo: Slo) -> tuple[Record, ...]:
    return (*sli_records(scope, slo), *quick_records(scope, slo))


def stack_groups(spec: Spec) -> tuple[Group, ...]:
    """Return the groups that watch the watchers."""
    return (
        Group("stack-base", spec.intervals.evaluation_seconds, quick_stack_alerts(spec)),
        Group("stack-slow", spec.intervals.slow_evaluation_seconds, slow_stack_alerts(spec)),
    )


def all_groups(spec: Spec) -> tuple[Group, ...]:
    """Return every group of every service, of the nodes, of RAG services and of the stack."""
    scopes = [Scope(spec, service) for service in spec.services]
    services = (group for scope in scopes for group in (*service_groups(scope), *drift_groups(scope)))
    return (*services, *node_groups(spec), *rag_groups(spec), *stack_groups(spec))


def all_alerts(spec: Spec) -> tuple[Alert, ...]:
    """Return every alerting rule, in the order of its groups."""
    return tuple(rule for group in all_groups(spec) for rule in group.rules if isinstance(rule, Alert))
