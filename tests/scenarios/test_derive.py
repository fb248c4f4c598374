"""One spec with a service for each row: same promises, rules of their own, and a past."""

import yaml

from inferwatch.scenarios import derive
from inferwatch.scenarios.faults import Nothing
from inferwatch.scenarios.row import Expected, History, Row
from slo import spec as slo_spec

ROWS = (
    Row("one", Nothing(None), requests_per_second=4, engines=2),
    Row(
        "two", Nothing(None), gpus=2, slos=("availability",), history=History(1.0, {"availability": 0.1}, 16)
    ),
)


def test_each_row_is_a_service_with_the_shipped_promises() -> None:
    """Ids and selectors differ; objectives, windows and intervals do not."""
    shipped = slo_spec.load()
    made = derive.derived(shipped, ROWS)

    assert [(s.id, s.matchers()) for s in made.services] == [
        ("one", 'service="one"'),
        ("two", 'service="two"'),
    ]
    assert made.services[0].slos == shipped.services[0].slos
    assert [slo.id for slo in made.services[1].slos] == ["availability"]
    assert made.services[1].throughput_floor.tokens_per_second == 2400  # two A100 at 1200 each
    assert (made.intervals, made.budget) == (shipped.intervals, shipped.budget)


def test_only_what_outlasts_the_run_is_held_for_less_and_that_is_said() -> None:
    """A stage that must bring EmbeddingDriftUnknown holds it for 1 min in place of 30; no other hold is touched."""
    shipped = slo_spec.load()
    rows = (Row("one", Nothing(None), (Expected("EmbeddingDriftUnknown"),)),)
    made = derive.staged(shipped, rows, rows)

    assert (shipped.drift.unknown.for_, made.drift.unknown.for_) == (1800, 60)
    assert made.drift.model_copy(update={"unknown": shipped.drift.unknown}) == shipped.drift
    assert made.node == shipped.node
    assert derive.hold_notes(shipped, rows) == {"EmbeddingDriftUnknown": "held 1 min in place of 30 min"}


def test_a_capped_gpu_is_told_after_a_minute_in_a_stage_that_has_one() -> None:
    """Its share and window stay; a stage without such a row has the shipped spec."""
    shipped = slo_spec.load()
    rows = (Row("gpu", Nothing(None), (Expected("GpuPowerCapped"),), stage="nodes", engines=0),)
    cap = derive.staged(shipped, (), rows).node.alerts.power_cap

    assert (cap.above_ratio, cap.window, cap.for_) == (0.5, 300, 60)
    assert derive.staged(shipped, (), ROWS[:1]) == shipped.model_copy(update={})
    assert derive.hold_notes(shipped, ROWS) == {}


def test_rules_come_from_the_generator() -> None:
    """Both services have a base group at the production interval; nothing for engines without the exporter."""
    groups = [
        group
        for text in derive.rule_files(derive.derived(slo_spec.load(), ROWS)).values()
        for group in yaml.safe_load(text)["groups"]
    ]
    intervals = {group["name"]: group["interval"] for group in groups}

    assert intervals["one-base"] == intervals["two-base"] == "5s"
    assert not [name for name in intervals if name.startswith("direct")]


def test_rules_for_engines_without_the_exporter_are_there_where_a_row_has_some() -> None:
    """Their groups come beside the services' own."""
    files = derive.rule_files(derive.derived(slo_spec.load(), ROWS), direct=True)

    assert {"direct-vllm-states.yaml", "direct-vllm-request_duration.yaml", "one-base.yaml"} <= set(files)


def test_the_past_is_the_live_rate_unless_it_is_given() -> None:
    """Two engines at 4/s make 8/s; 16 days are 384 hours."""
    one, two = derive.histories(ROWS)

    assert (one.service, one.requests_per_second, one.hours, one.bad_ratios) == ("one", 8, None, {})
    assert (two.requests_per_second, two.hours, two.bad_ratios) == (1.0, 384, {"availability": 0.1})
