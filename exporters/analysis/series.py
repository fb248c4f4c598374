"""Findings by service and model -> gauges; what is too old to be believed is not exposed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from exporters.analysis.findings import Findings, upper
from exporters.analysis.history import Key
from exporters.analysis.version_series import version_families
from exporters.analysis.versions import Key as StageKey
from exporters.analysis.versions import Version
from slo.names import analysis as names
from slo.names import labels

WHO = (labels.SERVICE, labels.MODEL)
CELL = (*WHO, names.LABEL_GRID, names.LABEL_X, names.LABEL_Y)


@dataclass
class State:
    """The last reading: when it was made (Unix seconds, None: never), how long it took, how many failed."""

    findings: Mapping[Key, Findings] = field(default_factory=dict)
    made_at: float | None = None
    duration_seconds: float | None = None
    errors: int = 0
    versions: Mapping[StageKey, Mapping[str, Version]] = field(default_factory=dict)


class AnalysisCollector(Collector):
    """Yields the last findings while they are younger than *max_age_seconds*."""

    def __init__(self, state: State, max_age_seconds: float, clock: Callable[[], float]) -> None:
        self._state, self._max_age_seconds, self._clock = state, max_age_seconds, clock

    def collect(self) -> Iterator[Metric]:
        state = self._state
        yield CounterMetricFamily(
            names.ERRORS.removesuffix("_total"), "Readings of Prometheus that failed.", value=state.errors
        )
        if state.made_at is None:
            return
        yield GaugeMetricFamily(
            names.LAST_SUCCESS, "Unix time of the last good reading.", value=state.made_at
        )
        yield GaugeMetricFamily(
            names.DURATION, "Seconds the last good reading took.", value=state.duration_seconds
        )
        if self._clock() - state.made_at <= self._max_age_seconds:
            yield from _grids(state.findings)
            yield from _regions(state.findings)
            yield from version_families(state.versions)


def _grids(found: Mapping[Key, Findings]) -> Iterator[Metric]:
    windows = GaugeMetricFamily(
        names.WINDOWS, "Windows of the lookback that fell into the cell.", labels=CELL
    )
    kept = GaugeMetricFamily(names.WINDOWS_KEPT, "Those of them that kept every promise.", labels=CELL)
    inside = GaugeMetricFamily(names.IN_REGION, "Whether the cell is in the best region.", labels=CELL)
    for who, findings in found.items():
        for grid_id, grid in findings.grids.items():
            for cell in grid.cells():
                at = [*who, grid_id, f"{grid.x_bounds[cell[0]]:g}", f"{grid.y_bounds[cell[1]]:g}"]
                windows.add_metric(at, grid.windows.get(cell, 0))
                kept.add_metric(at, grid.kept.get(cell, 0))
                if grid_id == names.GRID_BATCH_RATE:
                    inside.add_metric(
                        at, float(findings.region is not None and cell in findings.region.cells)
                    )
    yield from (windows, kept, inside)


def _regions(found: Mapping[Key, Findings]) -> Iterator[Metric]:
    size = GaugeMetricFamily(
        names.REGION_WINDOWS, "Windows in the best region; 0: no cell is good.", labels=WHO
    )
    limit = GaugeMetricFamily(
        names.BATCH_LIMIT, "Batch limit to set: the upper bound of the region's lower-left cell.", labels=WHO
    )
    edges = (*WHO, names.LABEL_EDGE)
    batch = GaugeMetricFamily(names.REGION_BATCH, "Batch sizes that the best region spans.", labels=edges)
    rate = GaugeMetricFamily(names.REGION_RATE, "Request rates that the best region spans.", labels=edges)
    for who, findings in found.items():
        region, grid = findings.region, findings.grids[names.GRID_BATCH_RATE]
        size.add_metric(who, region.windows if region else 0)
        if region is None:
            continue
        limit.add_metric(who, upper(grid.y_bounds, region.corner[1]))
        for family, axis, bounds in ((rate, 0, grid.x_bounds), (batch, 1, grid.y_bounds)):
            places = [cell[axis] for cell in region.cells]
            family.add_metric([*who, names.EDGE_LOWER], bounds[min(places)])
            family.add_metric([*who, names.EDGE_UPPER], upper(bounds, max(places)))
    yield from (size, limit, batch, rate)
