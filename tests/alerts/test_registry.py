"""Specs other than the shipped one: several services, loose objectives, GPUs that are known."""

from typing import Any

import yaml

from alerts.burn_alerts import unreachable
from alerts.registry import all_groups, service_groups
from alerts.rule import Alert
from alerts.scope import Scope
from slo import spec as slo_spec
from slo.spec import Spec


def spec_with(**changes: Any) -> Spec:
    """The shipped spec with keys of its first service changed, and a second service `other`."""
    raw = yaml.safe_load(slo_spec.DEFAULT_PATH.read_text(encoding="utf-8"))
    first = raw["services"][0]
    raw["services"] = [
        first | changes,
        first | {"id": "other", "selector": {"namespace": "b", "app": "~vllm.+"}},
    ]
    return slo_spec.parse(raw)


def exprs(spec: Spec, number: int) -> list[str]:
    """All expressions of one service."""
    scope = Scope(spec, spec.services[number])
    return [rule.expr for group in service_groups(scope) for rule in group.rules]


def test_each_service_reads_its_own_series() -> None:
    """The selector of slo.yaml stands in raw selectors; recorded series are told apart by service."""
    other = exprs(spec_with(), 1)

    assert any('llm_probe_success{namespace="b",app=~"vllm.+"}' in e for e in other)
    assert not any('service="llm"' in e for e in other)


def test_groups_of_services_have_names_of_their_own() -> None:
    """Prometheus refuses two groups of one name in a file; two in one folder would hide each other."""
    groups = [group.name for group in all_groups(spec_with())]

    assert len(groups) == len(set(groups))


def test_windows_that_nothing_can_fire_are_left_out_and_listed() -> None:
    """95 %: 14.4 x 5 % = 72 % can be reached; 80 %: 14.4 x 20 % = 288 % and 6 x 20 % = 120 % cannot."""
    slos = [
        {"id": "a", "kind": "availability", "objective": 0.95, "why": "x"},
        {"id": "b", "kind": "availability", "objective": 0.8, "why": "x"},
    ]
    scope = Scope(spec_with(slos=slos), spec_with(slos=slos).services[0])
    pages = [
        rule.labels["sloth_slo"]
        for group in service_groups(scope)
        for rule in group.rules
        if isinstance(rule, Alert) and rule.name == "AvailabilityBurnFast"
    ]

    assert pages == ["a"]
    assert unreachable(scope) == [
        "llm: b: the 1h/5m page would need 288 % of bad events",
        "llm: b: the 6h/30m page would need 120 % of bad events",
    ]


def test_the_throughput_floor_needs_gpus_that_are_known() -> None:
    """Two A100 at 1200 tokens a second each are 2400; with no GPUs named there is no rule."""
    floor = {
        "tokens_per_second_per_gpu": {"A100": 1200},
        "gpus": 2,
        "gpu_model": "A100",
        "window": "5m",
        "for": "2m",
    }

    assert not any("ThroughputLow" in rule.name for g in all_groups(spec_with()) for rule in g.rules)
    assert any("< 2400" in expr for expr in exprs(spec_with(throughput_floor=floor), 0))
