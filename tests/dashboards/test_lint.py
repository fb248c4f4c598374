"""What breaks dashboards in the field is found before Grafana sees it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dashboards import lint
from dashboards.provisioning import dashboard_provider, datasource
from dashboards.registry import build_all
from inferwatch.stack.config import prometheus_config
from inferwatch.stack.settings import default_settings
from slo.spec import load

CASES = Path(__file__).parents[1] / "fixtures" / "dashboards"
BOARDS = build_all(load())


def case(path: str) -> Any:
    """A file of a case."""
    text = (CASES / path).read_text(encoding="utf-8")
    return json.loads(text) if path.endswith(".json") else yaml.safe_load(text)


@pytest.mark.parametrize("uid", BOARDS)
def test_our_dashboards_have_no_fault(uid: str) -> None:
    """All rules, on what is generated."""
    assert lint.dashboard(BOARDS[uid], ["prometheus"]) == []


def test_data_sources_that_a_fresh_grafana_lacks_are_found() -> None:
    """Case A46: unresolved inputs and a uid of the author's machine fail, a data source variable passes."""
    expected = case("A46/expected.json")
    for name in expected["fail"]:
        assert lint.datasources(case(f"A46/{name}"), provisioned_uids=[]), name
    for name in expected["pass"]:
        assert lint.datasources(case(f"A46/{name}"), provisioned_uids=[]) == [], name
    (fault, *_) = lint.datasource(case("A46/datasource.yml"), 15)
    assert "has no uid" in fault


def test_heatmaps_that_would_sort_buckets_as_text_are_found() -> None:
    """Case A47."""
    assert case("A47/expected.json")["lint_fail"] == ["panel_bad.json"]
    assert len(lint.heatmap(case("A47/panel_bad.json"))) == 2
    assert lint.heatmap(case("A47/panel_ok.json")) == []


def test_other_labels_beside_le_are_found() -> None:
    """Aggregated by le and instance, each instance makes buckets of its own."""
    panel = case("A47/panel_ok.json")
    panel["targets"][0]["expr"] = "sum by (le, instance) (increase(x_bucket[$__rate_interval]))"
    assert lint.heatmap(panel) == ["aggregate by le alone; other labels make buckets of their own"]


def test_a_rate_interval_that_holds_one_sample_is_found() -> None:
    """Case A48: a 1 m scrape and no timeInterval give 4 × 15 s; it has to be 4 × 60 s."""
    files, expected = case("A48/datasource.yml"), case("A48/expected.json")
    assert expected["rate_interval_with_given_files"] == "1m"
    assert lint.rate_interval_seconds(files) == 60
    (fault,) = lint.datasource(files, scrape_seconds=60)
    assert "must be the scrape interval, 60 s" in fault
    files["datasources"][0]["jsonData"] = {"timeInterval": expected["timeInterval_required"]}
    assert lint.datasource(files, scrape_seconds=60) == []
    assert lint.rate_interval_seconds(files) == 240


def test_a_percentage_of_a_ratio_is_found() -> None:
    """Case A04: 100 × a ratio with percentunit, and 90 as a limit of a ratio."""
    panel, (over_range, times_100) = case("A04/panel.json"), case("A04/expected.json")["lint"]
    assert times_100 in lint.panel(panel)
    panel["targets"][0]["expr"] = "vllm:kv_cache_usage_perc > 90"
    assert over_range in lint.panel(panel)
    panel["targets"][0]["expr"] = "vllm:kv_cache_usage_perc > 0.90"
    assert over_range not in lint.panel(panel)
    panel["fieldConfig"]["defaults"]["thresholds"] = {"steps": [{"value": None}, {"value": 90}]}
    assert over_range in lint.panel(panel)


def test_shipped_scrapes_and_pages_agree_on_instance() -> None:
    """Case A71: exporters that name the engine's instance themselves are scraped with honor_labels."""
    jobs = {j["job_name"]: j for j in prometheus_config(load(), default_settings())["scrape_configs"]}
    assert jobs["llm-canary"]["honor_labels"] is True
    exprs = [t["expr"] for b in BOARDS.values() for p in b["panels"] for t in p.get("targets", ())]
    assert not [e for e in exprs if "exported_" in e]


def overlapping() -> Any:
    """The SLO page with its second panel pushed over the first."""
    board = json.loads(json.dumps(BOARDS["inferwatch-slo"]))
    board["panels"][1]["gridPos"]["x"] = 2
    return board


def test_structure_faults_are_named() -> None:
    """Overlap, a double id, a null, an old key, a fixed window."""
    assert any("overlap" in f for f in lint.dashboard(overlapping(), ["prometheus"]))
    board = json.loads(json.dumps(BOARDS["inferwatch-slo"]))
    board["panels"][1]["id"] = board["panels"][0]["id"]
    board["panels"][0]["interval"] = None
    board["rows"] = []
    board["panels"][0]["targets"][0]["expr"] = "rate(x[5m])"
    faults = "\n".join(lint.dashboard(board, ["prometheus"]))
    for part in (
        "not each its own",
        "panels[0].interval is null",
        "'rows' is of an older",
        "a fixed rate window",
    ):
        assert part in faults


def test_the_provisioned_files_are_right() -> None:
    """A fixed uid, the scrape interval of slo.yaml (5 s), files that a browser cannot change."""
    file = datasource(load())
    assert lint.datasource(file, 5) == []
    assert file["datasources"][0]["uid"] == "prometheus"
    (provider,) = dashboard_provider()["providers"]
    assert (provider["allowUiUpdates"], provider["type"]) == (False, "file")


def test_an_axis_of_plain_numbers_says_what_they_count() -> None:
    """Lines at 3 mean nothing where neither unit nor label says three of what; a second has its unit."""
    panel = {"type": "timeseries", "description": "x. Unit: cores. Source: y.", "targets": []}
    told = "plain numbers on its axis; say what they count with axisLabel"
    for unit, label, faults in (("none", "", [told]), ("short", "cores", []), ("s", "", [])):
        settings = {"unit": unit, "custom": {"axisLabel": label}}
        assert lint.panel(panel | {"fieldConfig": {"defaults": settings}}) == faults
        axis = {"unit": unit, "axisLabel": label}
        assert (told in lint.panel(panel | {"type": "heatmap", "options": {"yAxis": axis}})) == bool(faults)
    assert lint.panel(panel | {"fieldConfig": {"defaults": {}}}) == [told]
