"""The RAG page: numbers from slo.yaml, rows in their order, exemplars, and links that open Jaeger's search."""

import json
from typing import Any
from urllib.parse import unquote

import yaml

from dashboards.rag_common import rows, traces_link
from dashboards.rag_page import build
from slo.spec import DEFAULT_PATH, load, parse


def panel(title: str, page: dict[str, Any] | None = None) -> dict[str, Any]:
    """One panel by its title."""
    (found,) = [p for p in (page or build(load()))["panels"] if p["title"] == title and p["type"] != "row"]
    return found


def test_stages_are_held_against_their_promises() -> None:
    """Retrieval's P95 over 0.2 s, generation's over 2.5 s; a changed promise changes the page."""
    raw = yaml.safe_load(DEFAULT_PATH.read_text(encoding="utf-8"))
    raw["rag"]["stages"][2]["threshold_seconds"] = 0.75
    title = "Stage × time: P95 of its promise"
    (shipped,) = panel(title)["targets"]
    (changed,) = panel(title, build(parse(raw)))["targets"]

    for part in ('stage="retrieval",quantile="0.95",service=~"$service"}) / 0.2,', "}) / 2.5,"):
        assert part in shipped["expr"]
    assert 'stage="retrieval",quantile="0.95",service=~"$service"}) / 0.75,' in changed["expr"]


def test_rows_stand_in_the_order_in_which_stages_run() -> None:
    """Their names begin with their number, by which Prometheus' answers and Grafana's rows sort."""
    (target,) = panel("Stage × time: P95 of its promise")["targets"]
    names = ["1 · embedding", "2 · retrieval", "3 · rerank", "4 · assemble", "5 · generate", "6 · request"]

    assert [target["expr"].index(f'"row", "{name}"') for name in names] == sorted(
        target["expr"].index(f'"row", "{name}"') for name in names
    )
    assert rows("r", [("a", "x"), ("b", "y")]) == (
        'label_replace(x, "r", "1 · a", "", "") or label_replace(y, "r", "2 · b", "", "")'
    )


def test_exemplars_are_on_where_raw_span_metrics_are_read() -> None:
    """Recorded series have none; a heatmap and the stages' lines read the collector's own."""
    found = {
        (p["title"], t["exemplar"])
        for p in build(load())["panels"]
        for t in p.get("targets", ())
        if "traces_span_metrics_duration_seconds_bucket" in t["expr"]
    }

    assert found == {("Requests by time", True), ("Latency of each stage", True)}


def test_a_point_of_a_stage_leads_to_its_traces() -> None:
    """The link is Explore's address with a Jaeger search of that service and stage over the same time."""
    links = panel("Latency of each stage")["fieldConfig"]["defaults"]["links"]
    panes = json.loads(unquote(links[0]["url"].partition("panes=")[2]))["a"]

    assert panes["datasource"] == "jaeger"
    assert panes["range"] == {"from": "${__from}", "to": "${__to}"}
    (search,) = panes["queries"]
    assert search["queryType"] == "search"
    assert search["service"] == "${__field.labels.service_name}"
    assert search["tags"] == "rag.stage=${__field.labels.rag_stage}"
    (failed,) = panel("Errors of each stage")["fieldConfig"]["defaults"]["links"]
    assert "rag.stage=${__field.labels.stage} error=true" in unquote(failed["url"])


def test_grafana_finds_its_variables_in_a_link() -> None:
    """`${…}` stays as it is; what JSON needs is escaped."""
    url = traces_link("t", "${service}", 'a="b c"')["url"]

    assert '"' not in url and " " not in url
    assert "${__from}" in url and "${service}" in url


def test_kv_hits_go_from_red_to_green_and_lengths_upwards() -> None:
    """Grafana's heatmaps turn RdYlGn round unless it is reversed; seven classes of lengths, short below."""
    one = panel("KV hit rate × sequence length")

    assert (one["options"]["color"]["scheme"], one["options"]["color"]["reverse"]) == ("RdYlGn", True)
    (target,) = one["targets"]
    assert '"1 · 0-255 tokens"' in target["expr"] and '"7 · 8192+ tokens"' in target["expr"]


def test_versions_stand_side_by_side_with_their_intervals() -> None:
    """P95, its two bounds and the number of requests, one row a stage and version."""
    one = panel("Embedding versions side by side")
    renamed = one["transformations"][2]["options"]["renameByName"]

    assert list(renamed.values()) == ["Stage", "Version", "P95", "From", "To", "Requests"]
    assert [t["expr"].partition('bound="')[2].partition('"')[0] for t in one["targets"][:3]] == [
        "estimate",
        "lower",
        "upper",
    ]
