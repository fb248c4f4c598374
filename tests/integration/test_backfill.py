"""A real Prometheus started on a made-up past answers the windows as a long healthy service would."""

import socket
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from alerts.registry import service_groups
from alerts.rule import Record, rule_file
from alerts.scope import Scope
from inferwatch.promapi import PromError, Prometheus
from inferwatch.stack.backfill import ServiceHistory, Written, backfill
from inferwatch.stack.binaries import resolve
from inferwatch.stack.errors import StackError
from inferwatch.stack.progress import to_stderr
from inferwatch.stack.settings import default_settings
from slo import spec

pytestmark = pytest.mark.integration

RATE = 2.0
SLOS = {"availability", "request-latency", "time-to-first-token", "time-per-output-token"}


@dataclass(frozen=True)
class Started:
    """A Prometheus on a backfilled directory, and what was written there."""

    prometheus: Prometheus
    written: Written
    data_dir: Path


def until_ready(prometheus: Prometheus, process: "subprocess.Popen[bytes]") -> None:
    """Wait up to a minute for the first answer."""
    for _ in range(600):
        assert process.poll() is None, "prometheus ended while starting"
        try:
            prometheus.query("vector(1)")
        except PromError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("prometheus is not ready after a minute")


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """Write the history of the shipped spec, start Prometheus with the service's rules, end it after."""
    folder = tmp_path_factory.mktemp("backfill")
    settings, reporter = default_settings(), to_stderr()
    promtool, binary = (resolve(tool, settings, reporter).path for tool in ("promtool", "prometheus"))
    shipped = spec.load()
    data_dir = folder / "data"
    written = backfill(shipped, data_dir, [ServiceHistory("llm", "tiny", RATE)], promtool)
    groups = service_groups(Scope(shipped, shipped.service("llm")))
    (folder / "rules.yaml").write_text(rule_file(groups))
    (folder / "prometheus.yml").write_text("rule_files: [rules.yaml]\nscrape_configs: []\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(binary),
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={data_dir}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            with Prometheus(f"http://{address}") as prometheus:
                until_ready(prometheus, process)
                yield Started(prometheus, written, data_dir)
        finally:
            process.terminate()
            process.wait(timeout=30)


@pytest.mark.parametrize(
    ("record", "window", "samples", "step"),
    [
        ("slo:sli_total_events:rate", "5m", 60, 5),
        ("slo:sli_total_events:rate", "1h", 720, 5),
        ("slo:sli_total_events:avg1m", "30m", 30, 60),
        ("slo:sli_total_events:avg1m", "6h", 360, 60),
        ("slo:sli_total_events:avg1m", "1d", 1440, 60),
        ("slo:sli_total_events:avg1m", "3d", 4320, 60),
    ],
)
def test_each_window_is_full(started: Started, record: str, window: str, samples: int, step: int) -> None:
    """At 2 requests a second an hour holds 720 samples, whose sum times 5 s is 7200 requests."""
    at = started.written.last + 0.5
    seconds = samples * step
    counts = started.prometheus.query(f"count_over_time({record}[{window}])", at=at)
    assert {s.labels["sloth_slo"] for s in counts} == SLOS
    # Prometheus 2 closes a window on both sides and may count one sample more.
    assert {s.value for s in counts} <= {samples, samples + 1}
    sums = started.prometheus.query(f"sum_over_time({record}[{window}]) * {step}", at=at)
    assert {s.value for s in sums} <= {RATE * seconds, RATE * (seconds + step)}


def test_every_ratio_over_the_past_is_zero(started: Started) -> None:
    """The rules' own expressions, at the end of the past: bad over total is 0 for each SLO and window."""
    shipped = spec.load()
    ratios: dict[str, list[str]] = defaultdict(list)
    for group in service_groups(Scope(shipped, shipped.service("llm"))):
        for rule in group.rules:
            if isinstance(rule, Record) and rule.name.startswith("slo:sli_error:ratio_rate"):
                ratios[rule.name].append(rule.expr)
    assert set(ratios) >= {
        f"slo:sli_error:ratio_rate{w}" for w in ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
    }
    for name, exprs in ratios.items():
        answers = started.prometheus.query(" or ".join(exprs), at=started.written.last + 0.5)
        assert [s.value for s in answers] == [0.0] * 4, name
        assert {s.labels["model"] for s in answers} == {"tiny"}


def test_live_evaluation_goes_on_where_the_past_ends(started: Started) -> None:
    """The started Prometheus records the quick ratios at once, from the past, as 0; no rule fails."""
    for _ in range(300):
        live = started.prometheus.query("slo:sli_error:ratio_rate1h")
        if len(live) == len(SLOS):  # each has a group of its own, and groups do not begin together
            break
        time.sleep(0.1)
    assert [s.value for s in live] == [0.0] * 4
    assert {s.labels["sloth_id"] for s in live} == {f"llm-{slo}" for slo in SLOS}
    assert [r.health for group in started.prometheus.rules() for r in group.rules if r.health == "err"] == []
    assert [a for a in started.prometheus.alerts() if "Burn" in a.labels["alertname"]] == []


def test_a_second_history_is_refused(started: Started) -> None:
    """The directory is in use now; its history is not doubled."""
    promtool = resolve("promtool", default_settings(), to_stderr()).path
    with pytest.raises(StackError, match="already holds data"):
        backfill(spec.load(), started.data_dir, [ServiceHistory("llm", "tiny", RATE)], promtool)
