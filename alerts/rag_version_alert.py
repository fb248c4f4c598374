"""What exporters/analysis found of embedding versions -> the alert that one of them is worse than another."""

from alerts.promql import promql
from alerts.rule import Alert
from alerts.texts import links, percent, span
from slo.names import alerts, analysis
from slo.spec import Spec

WHICH = "service, stage, version, than"


def version_alert(spec: Spec) -> Alert:
    """Return the alert: the whole interval of the difference is over the part that matters, and it is in use."""
    versions, quantile = spec.rag.versions, f"P{spec.rag.judged_quantile * 100:g}"
    lower = f'{analysis.LABEL_BOUND}="{analysis.BOUND_LOWER}"'
    other = f'{analysis.VERSION_LATENCY}{{{analysis.LABEL_BOUND}="{analysis.BOUND_ESTIMATE}"}}'
    limit = f'label_replace({versions.worse_by_ratio:g} * {other}, "{analysis.LABEL_THAN}", "$1", "version", "(.+)")'
    return Alert(
        alerts.RAG_VERSION_WORSE,
        promql(f"""
            max by ({WHICH}) ({analysis.VERSION_DIFFERENCE}{{{lower}}})
            > on (service, stage, than) group_left ()
            max by (service, stage, than) ({limit})
            and on (service, stage, version) ({analysis.VERSION_IN_USE} == 1)
        """),
        "ticket",
        f"{{{{ $labels.service }}}}: embedding version {{{{ $labels.version }}}} makes {quantile} of "
        "{{ $labels.stage }} at least {{ $value | humanizeDuration }} slower than {{ $labels.than }}",
        f"Now: {{{{ $value | humanizeDuration }}}} is the lower end of the difference's {percent(versions.confidence)} "
        f"confidence interval, over {span(versions.lookback)} with at least {versions.min_requests} requests of each. "
        f"Promised: at most {percent(versions.worse_by_ratio)} of the other's {quantile}. Roll back or accept.",
        for_seconds=versions.for_,
        links=links(spec, alerts.RAG_VERSION_WORSE, "rag"),
    )
