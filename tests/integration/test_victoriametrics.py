"""A real VictoriaMetrics beside a real Prometheus: the same hour, the same answers; and remote write from one to the other."""

import json
import math
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from inferwatch.promapi import Prometheus, Series
from inferwatch.render.fetch import Answer, answers
from inferwatch.render.variables import Window, chosen
from inferwatch.stack import binaries, debian, processes
from inferwatch.stack.processes import Service
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import cache_dir, default_settings
from inferwatch.stack.state import Record

from . import recorded_hour as hour

ROOT = Path(__file__).resolve().parents[2]
REPORTER = Reporter(Console(stderr=True))
STEP = 15
# What a rate over few samples may differ by on average over half an hour: Prometheus extrapolates to the
# window's edges, VictoriaMetrics counts from the last sample before the window.
MEAN_OF_RATES = 0.05
NOTHING = 1e-9  # what is left of 0.1 + 0.2 - 0.3
pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
_RATES = re.compile(r"\b(?:rate|increase)\(")


def free_port() -> int:
    """A loopback port that nothing holds now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def victoria_service(folder: Path) -> Service:
    """Debian's VictoriaMetrics, unpacked into the cache."""
    package = "victoria-metrics"
    log = cache_dir({}) / "logs" / f"{package}.log"
    if debian.candidate(package) is None:
        debian.refresh(REPORTER, log)
    out = default_settings().cache_dir / f"{package}-{debian.candidate(package)}"
    if not (out / package).is_file():
        debian.unpack(package, out, REPORTER, log)
    port = free_port()
    words = (
        f"-httpListenAddr=127.0.0.1:{port}",
        f"-storageDataPath={folder / 'victoria'}",
        "-retentionPeriod=1",
    )
    # Freshly imported samples must be seen at once; in production both stay as they are.
    words += ("-search.disableCache", "-search.latencyOffset=0s")
    return Service("victoria", (str(out / package), *words), f"http://127.0.0.1:{port}", "/health")


def prometheus_service(folder: Path, config: str) -> Service:
    """The pinned Prometheus over the data in *folder*."""
    port = free_port()
    (folder / "prometheus.yml").write_text(config)
    binary = binaries.resolve("prometheus", default_settings(), REPORTER).path
    words = (f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}")
    listen = f"--web.listen-address=127.0.0.1:{port}"
    return Service("prometheus", (str(binary), *words, listen), f"http://127.0.0.1:{port}", "/-/ready")


def started(service: Service, folder: Path) -> Record:
    """The service, ready."""
    record = processes.start(service, folder / "logs")
    processes.wait_ready(service, record, REPORTER)
    return record


@dataclass(frozen=True)
class Both:
    """Two stores that hold the same raw and recorded series of one hour."""

    prometheus: Prometheus
    victoria: Prometheus
    start: int
    end: int

    def ask(self, expr: str) -> tuple[dict[str, Series], dict[str, Series]]:
        """The second half hour of *expr* from both: series by name and labels."""
        found = [
            client.query_range(expr, start=self.start + 1800, end=self.end, step_seconds=STEP)
            for client in (self.prometheus, self.victoria)
        ]
        mine, theirs = ({hour.unnamed(s.labels): s for s in one} for one in found)
        return mine, theirs


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """The hour is written into both; records are computed by Prometheus, level by level, and given to both."""
    folder = tmp_path_factory.mktemp("hour")
    (folder / "tsdb").mkdir()
    start = (int(time.time()) - 4200) // 60 * 60
    end = start + (hour.STEPS - 1) * hour.EVERY
    promtool = binaries.resolve("promtool", default_settings(), REPORTER).path
    raw = list(hour.openmetrics(hour.hour(), start))
    records = [rule for rule in hour.rules(["service-llm"]) if not rule.is_alert]
    running = [started(victoria := victoria_service(folder), folder)]
    try:
        hour.to_victoria(victoria.url, raw)
        hour.write_blocks(promtool, raw, folder / "tsdb")
        for level in hour.levels(records):
            lines = _computed(level, folder, start, end)
            if lines:
                hour.write_blocks(promtool, lines, folder / "tsdb")
                hour.to_victoria(victoria.url, lines)
        running.append(started(prometheus := prometheus_service(folder, ""), folder))
        with Prometheus(prometheus.url) as one, Prometheus(victoria.url) as other:
            yield Both(one, other, start, end)
    finally:
        for record in running:
            processes.stop(record)


def _computed(level: list[hour.Rule], folder: Path, start: int, end: int) -> list[str]:
    record = started(service := prometheus_service(folder, ""), folder)
    try:
        with Prometheus(service.url) as client:
            return [line for rule in level for line in hour.evaluated(client, rule, start, end)]
    finally:
        processes.stop(record)


def _distance(
    mine: dict[str, Series],
    theirs: dict[str, Series],
    of: Callable[[Series], dict[float, float]],
    scale: float = 0.0,
) -> float:
    """The largest difference of any value, relative to the larger one or to *scale*."""
    worst = 0.0
    for name, series in mine.items():
        a, b = of(series), of(theirs[name])
        for at in a.keys() & b.keys():
            if abs(a[at] - b[at]) > NOTHING and not (math.isnan(a[at]) and math.isnan(b[at])):
                worst = max(worst, abs(a[at] - b[at]) / max(abs(a[at]), abs(b[at]), scale))
    return worst


def _traffic(both: Both, rule: hour.Rule) -> float:
    """Bad events are what is left of all events less the good ones: few of many, so the many are the scale."""
    if rule.name != "slo:sli_bad_events:rate":
        return 0.0
    mine, _ = both.ask(f'slo:sli_total_events:rate{{sloth_id="{rule.labels["sloth_id"]}"}}')
    return max(_mean(series)[0.0] for series in mine.values())


def _each(series: Series) -> dict[float, float]:
    return dict(series.points)


def _mean(series: Series) -> dict[float, float]:
    values = [value for _, value in series.points if not math.isnan(value)]
    return {0.0: sum(values) / len(values)} if values else {}


def test_records_give_the_same_on_both(both: Both) -> None:
    """Every record has the same series; without a rate the same values, with one the same means."""
    seen, faults = 0, []
    for rule in hour.rules(["service-llm"]):
        if rule.is_alert:
            continue
        mine, theirs = both.ask(rule.expr)
        seen += bool(mine)
        has_rate = bool(_RATES.search(rule.expr))
        if mine.keys() != theirs.keys():
            faults.append(f"{rule.name}: series differ: {sorted(mine.keys() ^ theirs.keys())[:3]}")
            continue
        apart = _distance(mine, theirs, _mean if has_rate else _each, _traffic(both, rule))
        print(
            f"{rule.name:45} {len(mine):3} series, {'means' if has_rate else 'values'} apart by {apart:.2g}"
        )
        if apart > (MEAN_OF_RATES if has_rate else 1e-6):
            faults.append(f"{rule.name}: apart by {apart:.3g}")

    assert faults == []
    assert seen >= 60


def test_alerts_fire_at_the_same_times_on_both(both: Both) -> None:
    """Each alert's expression holds at the same times for the same series; the bad patch makes some of them hold."""
    held: dict[str, int] = {}
    for rule in hour.rules(["service-llm"]):
        if rule.is_alert:
            mine, theirs = both.ask(rule.expr)
            times = [{name: list(_each(s)) for name, s in one.items()} for one in (mine, theirs)]
            assert times[0] == times[1], rule.name
            held[rule.name] = held.get(rule.name, 0) + len(mine)

    assert held["EngineDown"] > 0
    assert held["AvailabilityBurnFast"] > 0
    assert held["CanaryFailing"] == 0


def test_dashboards_show_the_same_on_both(both: Both) -> None:
    """Every query of every dashboard is understood by both and gives the same series."""
    view = Window(both.start + 1800, both.end - 29, STEP, hour.EVERY)
    asked, with_data = 0, 0
    for file in sorted((ROOT / "dashboards" / "json").glob("*.json")):
        board = json.loads(file.read_text())
        values = chosen(board, {})
        given = [answers(board, client, values, view) for client in (both.prometheus, both.victoria)]
        for panel in board["panels"]:
            for mine, theirs in zip(
                given[0].get(panel["id"], []), given[1].get(panel["id"], []), strict=True
            ):
                asked += 1
                with_data += not mine.empty
                about = f"{file.stem}: {panel['title']}: {mine.ref_id}"
                assert (mine.error, theirs.error) == ("", ""), about
                assert _names(mine) == _names(theirs), about

    print(f"{asked} queries, {with_data} with data")
    assert with_data >= 50


def _names(answer: Answer) -> set[str]:
    return {hour.unnamed(one.labels) for one in (*answer.series, *answer.samples)}


def test_vmalert_takes_the_rule_files(tmp_path: Path) -> None:
    """The files as generated are accepted, a broken one is not."""
    vmalert = Path(victoria_service(tmp_path).argv[0]).with_name("vmalert")
    good = sorted((ROOT / "alerts" / "rules").glob("*.yaml"))
    bad = tmp_path / "bad.yaml"
    bad.write_text(good[0].read_text().replace("expr: |-", "expr: |-\n      ((", 1))

    def accepts(*files: Path) -> bool:
        words = [str(vmalert), "-dryRun", *(f"-rule={file}" for file in files)]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0

    assert accepts(*good)
    assert not accepts(bad)


def test_remote_write_carries_scrapes_and_alerts(tmp_path: Path) -> None:
    """A real Prometheus with our stack rules writes to VictoriaMetrics, which then answers as it does."""
    victoria = victoria_service(tmp_path)
    config = (
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f"rule_files: ['{ROOT / 'alerts' / 'rules' / 'stack.yaml'}']\n"
        "scrape_configs: [{job_name: victoria, static_configs: [{targets: ['%s']}]}]\n"
        "remote_write: [{url: '%s/api/v1/write', queue_config: {batch_send_deadline: 1s}}]\n"
    ) % (victoria.url.removeprefix("http://"), victoria.url)
    running = [started(victoria, tmp_path)]
    try:
        running.append(started(prometheus := prometheus_service(tmp_path, config), tmp_path))
        with Prometheus(prometheus.url) as one, Prometheus(victoria.url) as other:
            wanted = ('up{job="victoria"}', 'ALERTS{alertname="Watchdog",alertstate="firing"}')
            deadline = time.monotonic() + 60
            while not all(other.query(expr) for expr in wanted) and time.monotonic() < deadline:
                time.sleep(0.5)
            for expr in wanted:
                (mine,), (theirs,) = one.query(expr), other.query(expr)
                assert (mine.labels, mine.value) == (theirs.labels, theirs.value)
    finally:
        for record in reversed(running):
            processes.stop(record)
