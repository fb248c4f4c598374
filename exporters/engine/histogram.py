"""Whether a histogram can be believed: whole, counts that never fall, total equal to the last bucket."""

from exporters.engine.adapter import Samples

_LE = b',le="'
_LAST = b',le="+Inf"} '


def fault(buckets: Samples, sums: Samples, counts: Samples) -> str | None:
    """What is wrong with the family's series, or None. Label texts end in `} `; `le` stands last."""
    if not counts or len(sums) != len(counts) or len(buckets) % len(counts):
        return _fault_by_series(buckets, sums, counts)
    width = len(buckets) // len(counts)
    keys, numbers = list(buckets), list(map(float, buckets.values()))
    for at, (labels, count) in enumerate(counts.items()):
        series = numbers[at * width : (at + 1) * width]
        ordered = series == sorted(series) and keys[(at + 1) * width - 1 : (at + 1) * width] == [
            labels[:-2] + _LAST
        ]
        if not ordered or series[-1] != float(count) or labels not in sums:
            return _fault_by_series(buckets, sums, counts)
    return None


def _fault_by_series(buckets: Samples, sums: Samples, counts: Samples) -> str | None:
    """The same question asked slowly: buckets in any order, series of unequal width."""
    series: dict[bytes, list[tuple[float, float]]] = {}
    for labels, value in buckets.items():
        base, _, bound = labels.rpartition(_LE)
        series.setdefault(base + b"} ", []).append((float(bound[:-3]), float(value)))
    if series.keys() != counts.keys() or counts.keys() != sums.keys():
        return "a series without its buckets, its sum or its count"
    for labels, pairs in series.items():
        pairs.sort()
        values = [value for _, value in pairs]
        if values != sorted(values):
            return "bucket counts that fall with a rising bound"
        if pairs[-1][0] != float("inf"):
            return "a series without its +Inf bucket"
        if values[-1] != float(counts[labels]):
            return "a count that differs from the +Inf bucket"
    return None
