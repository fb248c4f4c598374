"""What stack rules read of Prometheus and Alertmanager is on the pages of real ones: a renamed counter would be silent for ever."""

import json
import re
import time
from pathlib import Path

import pytest
import urllib3

from alerts.lint import metric_names
from alerts.registry import stack_groups
from alerts.stack_alerts import INGESTION_COUNTERS
from inferwatch.stack import binaries
from inferwatch.stack.progress import to_stderr
from inferwatch.stack.settings import default_settings
from slo import spec as slo_spec

from .programs import running

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
READ = {name for g in stack_groups(slo_spec.load()) for r in g.rules for name in metric_names(r.expr)}


def read_of(program: str) -> set[str]:
    """Names of this program's own metrics that the rules read."""
    return {name for name in READ if name.startswith(f"{program}_")}


def shown(url: str) -> set[str]:
    """Names of which the page has a sample now."""
    page = urllib3.request("GET", f"{url}/metrics", timeout=10).data.decode()
    return set(re.findall(r"^([a-zA-Z_:][\w:]*)[{ ]", page, re.MULTILINE))


@pytest.mark.parametrize("old", [False, True], ids=["pinned", "2.42"])
def test_prometheus_shows_what_rules_read_of_it(tmp_path: Path, old: bool) -> None:
    """With one rule group and one Alertmanager to tell, as every installation has: all from the start, before any event."""
    rules = {"groups": [{"name": "g", "interval": "1s", "rules": [{"record": "r", "expr": "vector(1)"}]}]}
    (tmp_path / "rules.yaml").write_text(json.dumps(rules), encoding="utf-8")
    config = {
        "rule_files": ["rules.yaml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": ["127.0.0.1:9"]}]}]},
    }
    (tmp_path / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
    words = (f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'data'}")
    find = binaries.from_distribution if old else binaries.resolve
    with running(find("prometheus", default_settings(), to_stderr()).path, tmp_path, *words) as url:
        deadline = time.monotonic() + 20
        while (missing := read_of("prometheus") - shown(url)) and time.monotonic() < deadline:
            time.sleep(0.5)

    assert set(INGESTION_COUNTERS.values()) < read_of("prometheus")
    assert missing == set()


def test_alertmanager_shows_what_rules_read_of_it(tmp_path: Path) -> None:
    """Its counters of failed notifications are there before the first one. Debian's old one does not run unpacked."""
    config = tmp_path / "alertmanager.yml"
    config.write_text(
        json.dumps({"route": {"receiver": "n"}, "receivers": [{"name": "n"}]}), encoding="utf-8"
    )
    words = (
        f"--config.file={config}",
        f"--storage.path={tmp_path / 'data'}",
        "--cluster.listen-address=127.0.0.1:0",
    )
    with running(
        binaries.resolve("alertmanager", default_settings(), to_stderr()).path, tmp_path, *words
    ) as url:
        found = shown(url)

    assert read_of("alertmanager") == {
        "alertmanager_config_last_reload_successful",
        "alertmanager_cluster_members",
        "alertmanager_notifications_failed_total",
    }
    assert read_of("alertmanager") - found == set()
