"""Streams, references and drops -> the `llm_drift_*` families."""

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from exporters.drift.streams import Key, Stream, Streams
from slo.names import drift as names

STREAM = ["model", names.LABEL_VERSION, names.LABEL_TENANT]


class DriftCollector(Collector):
    """Everything that is read from *streams* at a scrape; scores are those of the last evaluation."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    def collect(self) -> Iterator[Metric]:
        yield from self._whole()
        yield from self._references()
        streams = [([key.model, key.version, key.tenant], s) for key, s in self._streams.streams.items()]
        yield _states(streams)
        yield from _scores(streams)
        yield from _numbers(streams, self._streams)
        yield self._accepted(streams)
        yield self._rejected(streams)

    def _whole(self) -> Iterator[Metric]:
        own = self._streams
        yield GaugeMetricFamily(names.STREAMS, "Streams that are watched now.", value=len(own.streams))
        yield GaugeMetricFamily(names.MEMORY, "Memory of the vectors that are held.", value=own.held_bytes)
        dropped = CounterMetricFamily(
            names.DROPPED.removesuffix("_total"),
            "Vectors (streams, memory) or answers and spans (busy, too_large, undecodable) that were not sampled.",
            labels=[names.LABEL_REASON],
        )
        for reason in names.DROP_REASONS:
            dropped.add_metric([reason], own.dropped[reason])
        yield dropped
        evaluation = GaugeMetricFamily(names.EVALUATION, "Duration of the last evaluation of all streams.")
        if own.evaluation_seconds is not None:
            evaluation.add_metric([], own.evaluation_seconds)
        yield evaluation

    def _references(self) -> Iterator[Metric]:
        labels = ["model", names.LABEL_VERSION, "dimension", "vectors"]
        info = GaugeMetricFamily(names.REFERENCE, "Reference profiles that are loaded.", labels=labels)
        created = GaugeMetricFamily(names.REFERENCE_TIME, "When the profile was fitted.", labels=labels[:2])
        for one in self._streams.profiles.values():
            info.add_metric([one.model, one.version, str(one.dimension), str(one.count)], 1)
            created.add_metric([one.model, one.version], one.created)
        yield info
        yield created

    def _accepted(self, streams: list[tuple[list[str], Stream]]) -> Metric:
        family = CounterMetricFamily(
            names.ACCEPTED.removesuffix("_total"),
            "Vectors taken into a window.",
            labels=[*STREAM, names.LABEL_SOURCE],
        )
        for labels, stream in streams:
            for source in names.SOURCES:
                family.add_metric([*labels, source], stream.accepted[source])
        return family

    def _rejected(self, streams: list[tuple[list[str], Stream]]) -> Metric:
        """Of streams, and under empty labels of batches that began none."""
        family = CounterMetricFamily(
            names.REJECTED.removesuffix("_total"),
            "Vectors that were refused, by reason.",
            labels=[*STREAM, names.LABEL_SOURCE, names.LABEL_REASON],
        )
        for labels, counts in [(["", "", ""], self._streams.unheard), *((k, s.rejected) for k, s in streams)]:
            for source in names.SOURCES:
                for reason in names.REJECT_REASONS:
                    family.add_metric([*labels, source, reason], counts[source, reason])
        return family


def _states(streams: list[tuple[list[str], Stream]]) -> Metric:
    family = GaugeMetricFamily(
        names.STATE,
        "The state that the stream is in is 1, the others are 0.",
        labels=[*STREAM, names.LABEL_STATE],
    )
    for labels, stream in streams:
        state = stream.verdict.state if stream.verdict else "insufficient"
        for one in names.STATES:
            family.add_metric([*labels, one], float(one == state))
    return family


def _scores(streams: list[tuple[list[str], Stream]]) -> Iterator[Metric]:
    for name, attribute, text in (
        (
            names.SCORE,
            "scores",
            "How far the window is from the reference; absent while that cannot be said.",
        ),
        (names.THRESHOLD, "thresholds", "Over it the detector says drift; for the number of vectors judged."),
        (
            names.FALSE_ALARM,
            "false_alarms",
            "Share of healthy windows over the threshold, measured at the fit.",
        ),
    ):
        family = GaugeMetricFamily(name, text, labels=[*STREAM, names.LABEL_DETECTOR])
        for labels, stream in streams:
            for detector, value in (getattr(stream.verdict, attribute) if stream.verdict else {}).items():
                family.add_metric([*labels, detector], value)
        yield family


def _numbers(streams: list[tuple[list[str], Stream]], own: Streams) -> Iterator[Metric]:
    now = own.clock()
    gauges: list[tuple[str, str, list[tuple[list[str], float | None]]]] = [
        (names.RATIO, "How near the worst score is to its threshold, by its rarity; drift is above 1.",
         [(k, s.verdict.ratio if s.verdict else None) for k, s in streams]),
        (names.LIKENESS,
            "Correlation of the spread along the reference's axes; near 0: another model's space.",
            [(k, s.verdict.likeness if s.verdict else None) for k, s in streams]),
        (names.WINDOW_VECTORS, "Vectors accepted within the window.", [(k, s.reservoir.seen(now)) for k, s in streams]),
        (names.SAMPLE_VECTORS, "Vectors of the window that are kept for judging.",
         [(k, min(s.reservoir.seen(now), own.drift.sample_size)) for k, s in streams]),
        (names.LAST_EVALUATION, "When the stream was last judged; absent before.",
         [(k, s.evaluated) for k, s in streams]),
    ]  # fmt: skip
    for name, text, values in gauges:
        family = GaugeMetricFamily(name, text, labels=STREAM)
        for labels, value in values:
            if value is not None:
                family.add_metric(labels, float(value))
        yield family
    swaps = GaugeMetricFamily(
        names.SWAP_INFO,
        "Why the stream is of another model than the reference.",
        labels=[*STREAM, names.LABEL_REASON],
    )
    for labels, stream in streams:
        if stream.verdict and stream.verdict.swap:
            swaps.add_metric([*labels, stream.verdict.swap], 1)
    yield swaps


def key_of(labels: dict[str, str]) -> Key:
    """The stream that a query's parameters name."""
    return Key(labels.get("model", ""), labels.get("version", ""), labels.get("tenant", ""))
