"""The stage `drift`: ports, targets, configurations with and without a reference, a past, faults that are switched."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from inferwatch.scenarios import drift_faults, drift_stage
from inferwatch.scenarios.drift_faults import OtherEmbeddings, WithoutReference
from inferwatch.scenarios.drift_shape import Sent
from inferwatch.scenarios.faults import Nothing
from inferwatch.scenarios.row import Row
from inferwatch.scenarios.rows import ROWS
from inferwatch.scenarios.stage import Stage
from inferwatch.stack.errors import StackError
from inferwatch.stack.settings import Settings, default_settings
from slo import spec as slo_spec

ONE = Row("one", Nothing(None), stage="drift", sent=Sent(), latency_before_seconds=0.8)
TWO = Row("two", Nothing(None), stage="drift", engines=0, sent=Sent())


@pytest.fixture
def own(tmp_path: Path) -> Settings:
    """A stage's settings."""
    return default_settings(run_dir=tmp_path, base_port=20000)


@pytest.fixture
def stage(own: Settings) -> Stage:
    """The two rows' stage, nothing started."""
    made = {service.name: service for service in drift_stage.drift_services((ONE, TWO), own)}
    return Stage("drift", own, slo_spec.load(), (ONE, TWO), made, {})


def test_every_part_has_a_port_of_its_own_within_the_stage() -> None:
    """Two for each row of the matrix and one for the sender, over the ports of engines."""
    rows = [row for row in ROWS if row.stage == "drift"]
    used = drift_stage.ports(rows, default_settings(base_port=20000))
    assert len(set(used.values())) == len(used) == 2 * len(rows) + 1
    assert min(used.values()) == 20200
    assert max(used.values()) < 20300


def test_each_exporter_is_scraped_under_the_name_of_its_row(own: Settings) -> None:
    """The sender has the first port; every exporter has one for /metrics and the next for what comes in."""
    drift_stage.write_targets((ONE, TWO), own)
    assert json.loads(own.drift_file.read_text()) == [
        {"targets": ["127.0.0.1:20201"], "labels": {"service": "one"}},
        {"targets": ["127.0.0.1:20203"], "labels": {"service": "two"}},
    ]


def test_an_exporter_is_started_with_its_own_configuration(stage: Stage, own: Settings) -> None:
    """It loads the stage's reference and listens for vectors at its second port."""
    service = stage.services["exporter-drift-two"]
    file = service.argv[service.argv.index("--config") + 1]
    assert yaml.safe_load(Path(file).read_text()) == {
        "references": [{"file": str(own.run_dir / "drift" / "reference.npz"), "model": "synthetic-64"}],
        "ingest": {"listen": "127.0.0.1:20204"},
    }
    assert (service.url, service.extra_ports) == ("http://127.0.0.1:20203", (20204,))


def test_a_past_is_written_where_a_row_states_one() -> None:
    """An hour and twice the quantile's 5 min before it, every 30 s, in the record that baselines are made of."""
    (series,) = drift_stage.past(slo_spec.load(), (ONE, TWO), 1_800_000_000)
    assert series.name == "inferwatch:joint_latency_normal:seconds"
    assert series.labels == {"service": "one", "sli": "request_duration", "model": "sim-llama"}
    assert (series.value, series.samples(), series.end) == (0.8, 140, 1_800_000_000)


def test_what_is_sent_changes_and_becomes_what_it_was(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sender is told where the row's exporter takes vectors, and what it sends to it."""
    told: list[tuple[str, str, Any]] = []
    monkeypatch.setattr(
        drift_stage, "post", lambda _, service, path, body: told.append((service, path, body))
    )
    row = Row("two", OtherEmbeddings(Sent(shifted=1.0)), stage="drift", engines=0, sent=Sent(vectors=10))
    row.fault.begin(stage, row)
    row.fault.end(stage, row)
    (where, path, during), (_, _, after) = told
    assert (where, path) == ("drift-sender", "/sent")
    assert during["two"]["url"] == "http://127.0.0.1:20204"
    assert (during["two"]["shifted"], during["two"]["vectors"]) == (1.0, 15)
    assert (after["two"]["shifted"], after["two"]["vectors"]) == (0.0, 10)


def test_a_row_that_sends_nothing_cannot_be_mended(stage: Stage) -> None:
    """Nobody knows what it is to send then."""
    row = Row("two", OtherEmbeddings(Sent()), stage="drift", engines=0)
    with pytest.raises(StackError, match="give the row `sent`"):
        row.fault.end(stage, row)


def test_a_reference_is_forgotten_and_comes_back(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exporter is ended and started again, each time with what its file says then."""
    seen: list[tuple[str, int]] = []
    file = drift_stage.config_file("two", stage.settings)

    def count(service: str, *_: int) -> None:
        seen.append((service, len(yaml.safe_load(file.read_text())["references"])))

    monkeypatch.setattr(stage, "signal", count)
    monkeypatch.setattr(stage, "revive", count)
    row = Row("two", WithoutReference(), stage="drift", engines=0, sent=Sent())
    row.fault.begin(stage, row)
    row.fault.end(stage, row)
    assert drift_faults.exporter_name("two") == "exporter-drift-two"
    assert seen == [("exporter-drift-two", n) for n in (0, 0, 1, 1)]


def test_what_is_sent_is_told_in_few_words() -> None:
    """Only what is not as usual."""
    assert str(Sent()) == "as usual"
    assert str(Sent(shifted=1.0, unusable=10)) == "shifted=1 unusable=10"
