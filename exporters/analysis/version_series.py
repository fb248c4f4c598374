"""Embedding versions by service and stage -> gauges; a difference that cannot be known is not there."""

from collections.abc import Iterator, Mapping

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from exporters.analysis.versions import Interval, Key, Version, differences
from slo.names import analysis as names
from slo.names import labels, rag

WHICH = (labels.SERVICE, rag.LABEL_STAGE, names.LABEL_VERSION)


def version_families(found: Mapping[Key, Mapping[str, Version]]) -> Iterator[Metric]:
    """Yield requests, use, latency and differences of every version."""
    requests = GaugeMetricFamily(
        names.VERSION_REQUESTS, "Requests of the embedding version within the lookback.", labels=WHICH
    )
    in_use = GaugeMetricFamily(names.VERSION_IN_USE, "Whether it had requests just now.", labels=WHICH)
    latency = GaugeMetricFamily(
        names.VERSION_LATENCY,
        "Its judged quantile with the interval's bounds.",
        labels=(*WHICH, names.LABEL_BOUND),
    )
    apart = GaugeMetricFamily(
        names.VERSION_DIFFERENCE,
        "Its judged quantile less that of the version `than`, with the interval's bounds.",
        labels=(*WHICH, names.LABEL_THAN, names.LABEL_BOUND),
    )
    for (service, stage), versions in found.items():
        for name, one in versions.items():
            who = [service, stage, name]
            requests.add_metric(who, one.requests)
            in_use.add_metric(who, float(one.in_use))
            if one.latency is not None:
                _add(latency, who, one.latency)
        for (name, than), one_difference in differences(versions).items():
            _add(apart, [service, stage, name, than], one_difference)
    yield from (requests, in_use, latency, apart)


def _add(family: GaugeMetricFamily, who: list[str], interval: Interval) -> None:
    for bound, value in (
        (names.BOUND_ESTIMATE, interval.estimate),
        (names.BOUND_LOWER, interval.lower),
        (names.BOUND_UPPER, interval.upper),
    ):
        family.add_metric([*who, bound], value)
