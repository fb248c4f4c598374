"""slo.yaml: what is accepted, and what each wrong value is told."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from slo.spec import DEFAULT_PATH, SpecError, load, parse


@pytest.fixture
def raw() -> dict[str, Any]:
    return copy.deepcopy(yaml.safe_load(DEFAULT_PATH.read_text(encoding="utf-8")))


def test_shipped_spec_makes_the_promises_of_the_design() -> None:
    """The shipped file promises what the design lists, value by value."""
    spec = load()
    slos = {s.id: s for s in spec.services[0].slos}

    assert slos["availability"].objective == 0.9995
    assert (slos["request-latency"].threshold_seconds, slos["request-latency"].objective) == (2.0, 0.99)
    assert slos["time-to-first-token"].threshold_seconds == 0.5
    assert slos["time-per-output-token"].threshold_seconds == 0.1
    assert spec.signal("cpu-binding").threshold == 0.82
    assert spec.signal("prefix-cache-hit").threshold == 0.61
    assert (spec.signal("waiting-requests").threshold, spec.signal("waiting-requests").statistic) == (
        4.7,
        "median",
    )
    assert spec.drift.pca_ratio_change.threshold == 0.15
    assert [(g.max_seconds, g.max_ratio, g.max_loss_ratio) for g in spec.gates] == [
        (0.3, None, None),
        (None, 0.005, None),
        (None, None, 0.05),
    ]
    assert spec.intervals.notification_promise_seconds == 45


CASES = {
    "unknown key": (lambda r: r.update(colour="red"), "colour: 'red': unknown key"),
    "missing key": (
        lambda r: r["canary"].pop("interval_seconds"),
        "canary.interval_seconds: missing; add it",
    ),
    "objective out of range": (
        lambda r: r["services"][0]["slos"][0].update(objective=99.95),
        "services[0].slos[0].objective: 99.95: Input should be less than 1",
    ),
    "threshold between two bounds": (
        lambda r: r["services"][0]["slos"][1].update(threshold_seconds=2.2),
        "threshold_seconds 2.2 is not a bucket bound of request_duration; use 2 or 2.5",
    ),
    "unknown sli": (
        lambda r: r["services"][0]["slos"][1].update(sli="latency"),
        "sli 'latency' is unknown; use one of",
    ),
    "slo id twice": (
        lambda r: r["services"][0]["slos"][1].update(id="availability"),
        "slo id 'availability' stands twice in service 'llm'",
    ),
    "service id twice": (lambda r: r["services"].append(r["services"][0]), "services: 'llm' stands twice"),
    "signal id twice": (
        lambda r: r["signals"].append(r["signals"][0]),
        "signals: 'cpu-binding' stands twice",
    ),
    "missing route": (lambda r: r["routes"].pop(0), "routes: no route for severity page; add one each"),
    "percent where a ratio stands": (lambda r: r["signals"][1].update(threshold=61), "90 % is written 0.9"),
    "no duration": (
        lambda r: r["states"]["hung"].update(window="20 sec"),
        "states.hung.window: '20 sec': '20 sec' is not a duration",
    ),
    "short window not shorter": (
        lambda r: r["budget"]["windows"][0].update(short="1h"),
        "budget.windows[0]: short (3600s) must be shorter than long (3600s)",
    ),
    "window longer than the period": (
        lambda r: r["budget"].update(period_days=2),
        "longer than the period of 2 d",
    ),
    "joint cell left out": (
        lambda r: r["joint"]["cells"]["steady"].pop("unknown"),
        "cells.steady lacks unknown",
    ),
    "gate with the wrong bound": (
        lambda r: r["gates"][1].update(max_seconds=1.0),
        "gates[1]: a gate on errors takes max_ratio",
    ),
    "scrape timeout over the interval": (
        lambda r: r["intervals"].update(scrape_timeout_seconds=9),
        "scrape_timeout_seconds 9.0 is over scrape_seconds 5",
    ),
    "groups of pages shorter than a resend": (
        lambda r: r["intervals"].update(page_group_interval_seconds=65),
        "page_group_interval_seconds 65 must be above the 65 s after which Prometheus sends an alert",
    ),
    "groups shorter than a resend": (
        lambda r: r["intervals"].update(group_interval_seconds=120),
        "intervals: group_interval_seconds 120 must be above the 120 s after which Prometheus sends an alert",
    ),
    "GPU model with no floor": (
        lambda r: r["services"][0]["throughput_floor"].update(gpus=2, gpu_model="H200"),
        "gpu_model 'H200' has no entry in tokens_per_second_per_gpu",
    ),
    "not a number": (
        lambda r: r["canary"].update(timeout_seconds=float("nan")),
        "canary.timeout_seconds: nan",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_each_fault_is_named_with_its_key_and_mend(case: Any, raw: dict[str, Any]) -> None:
    """A wrong spec is refused with one line that names file, key, value and mend."""
    change, expected = case
    change(raw)

    with pytest.raises(SpecError) as error:
        parse(raw, source="my.yaml")

    assert "my.yaml: " in str(error.value)
    assert expected in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_two_faults_are_both_told(raw: dict[str, Any]) -> None:
    """All faults of a file are told at once, a line each."""
    raw["colour"] = "red"
    raw["canary"]["interval_seconds"] = 0

    with pytest.raises(SpecError) as error:
        parse(raw)

    assert len(str(error.value).splitlines()) == 2


def test_key_written_twice_is_an_error(tmp_path: Path) -> None:
    """YAML would keep the later of two equal keys without a word."""
    path = tmp_path / "slo.yaml"
    path.write_text("version: 1\nversion: 2\n", encoding="utf-8")

    with pytest.raises(SpecError, match="line 1: key 'version' stands twice"):
        load(path)


def test_missing_file_and_broken_yaml_name_the_file(tmp_path: Path) -> None:
    """A file that is not there or is no YAML is named."""
    with pytest.raises(SpecError, match=r"nowhere\.yaml: cannot be read: No such file"):
        load(tmp_path / "nowhere.yaml")

    broken = tmp_path / "broken.yaml"
    broken.write_text("services: [", encoding="utf-8")
    with pytest.raises(SpecError, match=r"broken\.yaml: not valid YAML"):
        load(broken)


def test_selector_becomes_matchers(raw: dict[str, Any]) -> None:
    """A value is matched exactly; with ~ in front it is a regular expression. PromQL reads escapes in both."""
    raw["services"][0]["selector"] = {"namespace": "prod", "pod": "~chat-.*"}

    assert parse(raw).services[0].matchers() == 'namespace="prod",pod=~"chat-.*"'

    raw["services"][0]["selector"] = {"pod": r"~chat-\d+", "team": 'a "b"'}

    assert parse(raw).services[0].matchers() == r'pod=~"chat-\\d+",team="a \"b\""'


def test_floor_of_unknown_gpus_is_not_judged(raw: dict[str, Any]) -> None:
    """2 GPUs × 1200 tokens/s is 2400; an unknown number of GPUs has no floor."""
    assert parse(raw).services[0].throughput_floor.tokens_per_second is None
    raw["services"][0]["throughput_floor"].update(gpus=2, gpu_model="NVIDIA A100-SXM4-80GB")
    assert parse(raw).services[0].throughput_floor.tokens_per_second == 2400
