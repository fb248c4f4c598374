"""The marked lines of the collector's configuration say what slo.yaml says, and only they are touched."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from inferwatch.collector import render
from slo import spec as slo_spec

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / render.FILE).read_text(encoding="utf-8")
SPEC = slo_spec.load()
CONFIG = yaml.safe_load(TEXT)


def seconds(go: str) -> float:
    """A bound such as 2500us in seconds."""
    bound = re.fullmatch(r"(\d+)(us|ms|s)", go)
    assert bound is not None, go
    return int(bound[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1.0}[bound[2]]


def policies() -> dict[str, dict[str, Any]]:
    """Sampling policies by name."""
    return {policy["name"]: policy for policy in CONFIG["processors"]["tail_sampling"]["policies"]}


def test_both_histograms_have_every_threshold_as_a_bound() -> None:
    """A promise that is no bound could only be judged by interpolation: 2 s, 0.5 s, and each stage's."""
    spans = CONFIG["connectors"]["span_metrics"]["histogram"]
    stages = CONFIG["connectors"]["signal_to_metrics"]["spans"][0]["histogram"]["buckets"]
    bounds = [seconds(bound) for bound in spans["explicit"]["buckets"]]
    promised = {2.0, 0.5} | {stage.threshold_seconds for stage in SPEC.rag.stages}

    assert spans["unit"] == "s"
    assert bounds == pytest.approx(stages)
    assert promised <= set(stages)


def test_slow_is_what_slo_yaml_promises() -> None:
    """A request over 2 s and a first token over 0.5 s, as services[llm] has them."""
    found = policies()

    assert found["slow"]["latency"] == {"threshold_ms": 2000}
    (condition,) = found["slow-first-token"]["ottl_condition"]["span"]
    assert 'span.attributes["gen_ai.latency.time_to_first_token"] > 0.5' in condition


def test_the_share_is_one_percent_of_all_ids() -> None:
    """Four hexadecimal digits: 0.01 × 65536 = 655.36, so ids that end under 0x028f = 655 are kept."""
    assert render.share_bound(0.01) == "028f"
    assert render.share_bound(1.0) == "ffff"
    (condition,) = policies()["share-production"]["ottl_condition"]["span"]
    assert condition == 'Substring(span.trace_id.string, 28, 4) < "028f"'


def test_an_exemplar_is_shown_of_kept_traces_only() -> None:
    """The condition under which a span loses its trace id for metrics names each sure reason to keep it."""
    (lost,) = CONFIG["processors"]["transform/measure"]["trace_statements"][1]["conditions"]

    assert lost.startswith("not (")
    assert 'Substring(span.trace_id.string, 28, 4) < "028f"' in lost
    assert "STATUS_CODE_ERROR" in lost
    assert "> 2000000000" in lost


def test_what_is_committed_is_what_the_spec_gives() -> None:
    """`inferwatch gen --check` finds nothing to do."""
    assert render.write(check=True) == []


def test_only_marked_lines_change() -> None:
    """A stale number is brought up to date, and every other line stays as it is, comments too."""
    stale = TEXT.replace("threshold_ms: 2000 # gen", "threshold_ms: 1 # gen")

    assert stale != TEXT
    assert render.rendered(stale, SPEC) == TEXT


def test_a_lost_or_unknown_marker_is_an_error() -> None:
    """A number that would no longer be kept up to date is named."""
    with pytest.raises(render.MarkerError, match="no line is marked `# gen: settle`"):
        render.rendered(TEXT.replace(" # gen: settle", ""), SPEC)
    with pytest.raises(render.MarkerError, match="nothing writes `# gen: moon`"):
        render.rendered("a: 1 # gen: moon\n", SPEC)
