"""Buckets -> rates by model and bound, quantiles, means, and whether the quantile is on the scale at all.

Bucket rates are taken over one slow evaluation plus one scrape, so that neighbouring windows meet
without a gap, and five minutes are summed from them: a tenth of the samples that rate()[5m] reads.
Only bounds that every engine of the model has are used; mixed layouts would give wrong numbers.
"""

from alerts.events import HISTOGRAMS, trusted
from alerts.promql import promql, window
from alerts.rule import Record
from alerts.scope import Scope
from slo.names import records


def bucket_records(scope: Scope, sli: str) -> tuple[Record, ...]:
    """Return bucket and sum rates of one stage, aggregated over instances; for slow evaluation."""
    intervals, family = scope.spec.intervals, HISTOGRAMS[sli]
    span = window(intervals.slow_evaluation_seconds + intervals.scrape_seconds)
    named = scope.labels | {"sli": sli}
    buckets = trusted(scope, f"rate({scope.raw(family + '_bucket')}{span})")
    sums = trusted(scope, f"rate({scope.raw(family + '_sum')}{span})")
    return (
        Record(records.LATENCY_BUCKET, f"sum by (model, le) ({buckets})", named),
        Record(records.LATENCY_SUM, f"sum by (model) ({sums})", named),
    )


def bound_records(scope: Scope, sli: str) -> tuple[Record, ...]:
    """Return how many series of one stage have each bound; a bound that not all have is not used."""
    return (
        Record(
            records.LATENCY_BOUND_INSTANCES,
            f"count by (model, le) ({scope.raw(HISTOGRAMS[sli] + '_bucket')})",
            scope.labels | {"sli": sli},
        ),
    )


def uncommon_bounds(scope: Scope) -> str:
    """Return the bounds that some engines of a model have and others do not."""
    bounds = scope.recorded(records.LATENCY_BOUND_INSTANCES)
    everyone = scope.recorded(records.LATENCY_BOUND_INSTANCES, 'le="+Inf"')
    return f"{bounds} < on (sli, model) group_left () {everyone}"


def quantile_records(scope: Scope) -> tuple[Record, ...]:
    """Return quantiles, mean and off-scale share; none of them has a sample without traffic.

    Without a bound that all engines have there is no quantile either; the comparison drops the NaN.
    """
    span = window(scope.spec.latency.window)
    rates = f"sum_over_time({scope.recorded(records.LATENCY_BUCKET)}{span})"
    common = f"{rates} unless on (sli, model, le) ({uncommon_bounds(scope)})"
    everything = scope.recorded(records.LATENCY_BUCKET, 'le="+Inf"')
    traffic = f"sum_over_time({everything}{span}) > 0"
    judged = f"({common}) and on (sli, model) ({traffic})"
    finite = scope.recorded(records.LATENCY_BUCKET, 'le!="+Inf"')
    highest = promql(f"""
        max by (sli, model) (
          sum_over_time({finite}{span})
          unless on (sli, model, le) ({uncommon_bounds(scope)})
        )
    """)
    return (
        *(
            Record(
                records.LATENCY_QUANTILE,
                f"histogram_quantile({q:g}, {judged}) >= 0",
                scope.labels | {"quantile": f"{q:g}"},
            )
            for q in scope.spec.latency.quantiles
        ),
        Record(
            records.LATENCY_MEAN,
            promql(f"""
                sum_over_time({scope.recorded(records.LATENCY_SUM)}{span})
                / on (sli, model) group_left ()
                  (sum by (sli, model) ({traffic}))
            """),
            scope.labels,
        ),
        Record(
            records.LATENCY_OFF_SCALE,
            f"clamp_min(1 - {highest} / on (sli, model) (sum by (sli, model) ({traffic})), 0)",
            scope.labels,
        ),
    )
