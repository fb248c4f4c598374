"""Environments: changes laid over the file, validated as a whole; promises that intervals cannot keep are refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from slo import spec as slo_spec

SHIPPED = yaml.safe_load(slo_spec.DEFAULT_PATH.read_text())


def changed(tmp_path: Path, change: dict[str, Any]) -> Path:
    """slo.yaml with *change* laid over its top level."""
    file = tmp_path / "slo.yaml"
    file.write_text(yaml.safe_dump({**SHIPPED, **change}, sort_keys=False))
    return file


def test_production_is_the_file_itself() -> None:
    """90 days, a page within 45 s; the first environment is the one without a name."""
    found = slo_spec.load()

    assert found == slo_spec.load(environment="production")
    assert (found.environment, found.retention_days) == ("production", 90)
    assert found.intervals.notification_promise_seconds == 45


def test_staging_changes_what_it_names_and_nothing_else() -> None:
    """7 days, a page within 2 min, scrapes every 15 s; objectives are production's."""
    staging, production = slo_spec.load(environment="staging"), slo_spec.load()

    assert (staging.retention_days, staging.intervals.notification_promise_seconds) == (7, 120)
    assert (staging.intervals.scrape_seconds, staging.states.hung.window) == (15, 60)
    assert staging.services == production.services
    assert staging.intervals.repeat_interval_seconds == production.intervals.repeat_interval_seconds


def test_the_text_of_an_environment_is_that_environment(tmp_path: Path) -> None:
    """What the canary is given in a cluster loads as the spec it was made from."""
    file = tmp_path / "slo.yaml"
    file.write_text(slo_spec.text(environment="staging"))

    assert slo_spec.load(file) == slo_spec.load(environment="staging")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"environments": []}, "environments: "),
        ({"environments": [{"id": "a", "retention_days": 7}]}, "a keeps 7 days and the budget's period is 30"),
        (
            {"environments": [{"id": "a", "retention_days": 40, "downsampling": [{"after_days": 50, "resolution": "1m"}]}]},
            r"downsampling after \[50\] days with 40 days kept",
        ),
        (
            {"environments": [{"id": "a", "retention_days": 40, "changes": {"environments": []}}]},
            "changes may not hold 'environments'; remove it",
        ),
        (
            {"environments": [{"id": "a", "retention_days": 40, "changes": {"intervals": {"scrap_seconds": 1}}}]},
            "intervals.scrap_seconds: 1: unknown key",
        ),
        (
            {"intervals": {**SHIPPED["intervals"], "notification_promise_seconds": 25}},
            "notification_promise_seconds 25: a hang can take 31 s to be notified",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    """Each fault is named with its value and the mend."""
    with pytest.raises(slo_spec.SpecError, match=said):
        slo_spec.load(changed(tmp_path, change))


def test_an_unknown_environment_lists_those_there_are() -> None:
    """A misspelt --environment does not fall back to production."""
    with pytest.raises(slo_spec.SpecError, match="no environment 'prod'; it has production, staging"):
        slo_spec.load(environment="prod")
