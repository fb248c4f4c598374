"""The review of rules: what Prometheus accepts and what is wrong all the same."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.expressions import metric_names, range_calls
from alerts.lint import dangling, faults

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "fixtures" / "alerts"
GENERATED = sorted((ROOT / "alerts" / "rules").glob("*.yaml"))


def parsed(path: Path) -> Any:
    """A rule file as YAML."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_a_ratio_compared_with_90_is_refused() -> None:
    """kv_cache_usage_perc is 0 to 1: "> 90" never fires, "> 0.90" does."""
    found = faults(parsed(CASES / "A04" / "rules.yml"), {"": 5})

    assert [f for f in found if "0 to 1" in f] == [
        "NaiveKvHigh: compares vllm:kv_cache_usage_perc, a ratio of 0 to 1, with 90; write 90 % as 0.9"
    ]


def test_the_value_in_a_label_is_refused() -> None:
    """Each evaluation would make another alert; in an annotation the value is welcome."""
    found = faults(parsed(CASES / "A42" / "rules.yml"), {"": 5})

    assert [f.partition(":")[0] for f in found if "holds the value" in f] == ["NaiveQueue"]


def test_windows_of_less_than_four_scrapes_are_refused() -> None:
    """15 s and 30 s on a 15 s job, and 1 m on a job of 1 m; 1 m is enough for the fast job alone."""
    jobs = {
        job["job_name"]: 60 if job.get("scrape_interval") == "1m" else 15
        for job in parsed(CASES / "A70" / "prometheus.yml")["scrape_configs"]
    }
    rules = parsed(CASES / "A70" / "rules.yml")

    found = {f.partition(":")[0] for f in faults(rules, jobs) if "too few samples" in f}
    fast = {f.partition(":")[0] for f in faults(rules, {"": 15}) if "too few samples" in f}

    assert found == {"a", "b", "c", "d"}
    assert fast == {"a", "b"}


def test_a_rate_of_a_sum_is_refused() -> None:
    """A restart hides in the sum; the sum of rates is right."""
    found = faults(parsed(CASES / "A36" / "rules.yml"), {"": 15})

    assert [f.partition(": ")[0] for f in found if "rate first" in f] == ["naive:tps_is_spike"]


def test_rules_on_metrics_that_nobody_exposes_are_found() -> None:
    """Three names were removed from vLLM; an alert on them stays green for ever."""
    exposition = (CASES / "A20" / "exposition.txt").read_text(encoding="utf-8")
    exposed = {line.partition("{")[0] for line in exposition.splitlines() if not line.startswith("#")}

    assert dangling(parsed(CASES / "A20" / "rules.yml"), exposed) == [
        "vllm:cpu_cache_usage_perc",
        "vllm:gpu_prefix_cache_hit_rate",
        "vllm:num_requests_swapped",
    ]


def test_names_are_read_from_expressions() -> None:
    """Functions, labels, label lists, strings, durations and keywords are no metrics."""
    expression = """
        sum by (model, le) (rate(a_total{x="not_me",y=~"b|c"}[5m])) / on (model) group_left (x)
        (ns:b:rate1m offset 5m > bool 0) unless on () absent(c_total) # d_total
    """

    assert metric_names(expression) == {"a_total", "ns:b:rate1m", "c_total"}


def test_ranges_are_read_from_expressions() -> None:
    """Function, metric, matchers and length of each range."""
    (call,) = range_calls('max(rate(a_total{job="slow"}[1m30s]))')

    assert (call.function, call.metric, call.matchers, call.seconds) == (
        "rate",
        "a_total",
        '{job="slow"}',
        90,
    )


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.stem)
def test_our_own_rules_have_no_fault(path: Path) -> None:
    """Scraped every 5 s as slo.yaml says."""
    assert faults(parsed(path), {"": 5}) == []
