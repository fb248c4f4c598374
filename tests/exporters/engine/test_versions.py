"""Every vLLM version from 0.6.6 to 0.33.0, and Ray, against the expected values worked out beside them."""

import gzip
import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "fixtures" / "engine" / "families"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
HISTOGRAMS = {
    "ttft": "llm_time_to_first_token_seconds",
    "itl": "llm_inter_token_latency_seconds",
    "request_tpot": "llm_time_per_output_token_seconds",
    "e2e": "llm_request_duration_seconds",
    "queue": "llm_request_queue_seconds",
}
NUMBERS = {
    "prompt_tokens": "llm_prompt_tokens_total",
    "generation_tokens": "llm_generation_tokens_total",
    "running": "llm_requests_running",
    "waiting": "llm_requests_waiting",
    "preemptions": "llm_preemptions_total",
}


def load(name):
    """The exposition and the expected values of one version."""
    expected = json.loads((FOLDER / f"{name}.json").read_text())
    body = gzip.decompress((FOLDER / f"{name}.txt.gz").read_bytes())
    return body, expected, "unknown" if name.startswith("ray") else expected["version"]


def test_every_sampled_version_is_here():
    """The list of versions is not empty by accident: 34 of vLLM, two of Ray."""
    assert len([name for name in NAMES if name.startswith("vllm-")]) == 34
    assert len([name for name in NAMES if name.startswith("ray-")]) == 2


@pytest.mark.parametrize("name", NAMES)
def test_latencies_have_the_expected_counts_and_sums(name, translated):
    """Count and sum of each latency histogram, over all series; absent where the version lacks it."""
    body, expected, version = load(name)
    page = translated(body, version).page
    for key, family in HISTOGRAMS.items():
        want = expected[key]
        assert page.total(f"{family}_count") == (want["count"] if want else None), key
        assert page.total(f"{family}_sum") == (pytest.approx(want["sum"], rel=1e-12) if want else None), key


@pytest.mark.parametrize("name", NAMES)
def test_counts_and_gauges_have_the_expected_values(name, translated):
    """Tokens, requests by state and reason, preemptions; a counter that Ray skips stays absent."""
    body, expected, version = load(name)
    page = translated(body, version).page
    for key, family in NUMBERS.items():
        assert page.total(family) == expected[key], key
    finished = {
        reason: page.total("llm_requests_total", finish_reason=reason)
        for reason in expected["requests_finished"]
    }
    assert finished == expected["requests_finished"]
    assert page.total("llm_requests_total") == sum(expected["requests_finished"].values())


@pytest.mark.parametrize("name", NAMES)
def test_kv_usage_is_one_series_a_core(name, translated):
    """The mean over cores is the expected one, and each core's own value where several are listed."""
    body, expected, version = load(name)
    values = translated(body, version).page.values("llm_kv_cache_usage_ratio")
    assert sum(values) / len(values) == pytest.approx(expected["kv_usage_ratio"])
    each = expected.get("kv_usage_ratio_per_engine")
    assert sorted(values) == pytest.approx(sorted(each.values()) if each else [expected["kv_usage_ratio"]])


@pytest.mark.parametrize("name", NAMES)
def test_prefix_cache_is_in_tokens_or_absent(name, translated):
    """Tokens where the version counts tokens; blocks of 16 are converted; the ratio is right in both."""
    body, expected, version = load(name)
    page = translated(body, version).page
    hit, queried = (page.total(f"llm_prefix_cache_{kind}_tokens_total") for kind in ("hit", "queried"))
    want = expected["prefix_cache"]
    if want is None or want["hit_ratio"] is None:
        assert hit is None
        assert queried is None
    elif want.get("hit_blocks") is not None:
        assert (hit, queried) == (want["hit_blocks"] * 16, want["queried_blocks"] * 16)
        assert hit / queried == pytest.approx(want["hit_ratio"])
    else:
        assert (hit, queried) == (want["hit_tokens"], want["queried_tokens"])


@pytest.mark.parametrize("name", ["vllm-0.8.5", "vllm-0.9.0"])
def test_old_prefix_names_are_left_out_when_the_version_is_unknown(name, translated):
    """Blocks or tokens cannot be told from the page alone, so neither is guessed."""
    body, _, _ = load(name)
    page = translated(body, "unknown").page
    assert page.total("llm_prefix_cache_hit_tokens_total") is None
    assert page.total("llm_prefix_cache_queried_tokens_total") is None
    assert page.total("llm_prompt_tokens_total") is not None


@pytest.mark.parametrize("name", NAMES)
def test_only_canonical_names_and_labels_come_out(name, translated):
    """No engine spelling, no process id, no start time; each sample names the only model."""
    body, _, version = load(name)
    page = translated(body, version).page
    allowed = {
        "model", "dp_rank", "le", "finish_reason", "handler", "code", "source", "reason",
        "engine", "version", "simulated", "adapter", "state",
    }  # fmt: skip
    for sample in page.samples:
        assert sample.name.startswith("llm_")
        assert not sample.name.endswith("_created")
        assert set(sample.labels) <= allowed
        assert sample.labels["model"] == "demo-model"


def test_ray_replicas_stay_apart(translated):
    """Two replicas on one Ray page both call themselves engine 0; the rank tells them apart."""
    body, expected, version = load("ray-2.60.0-2replicas")
    page = translated(body, version).page
    each = expected["kv_usage_ratio_per_engine"]
    for replica in ("replica-0", "replica-1"):
        assert page.one("llm_kv_cache_usage_ratio", dp_rank=f"{replica}/0") == each[replica]
    assert len(page.values("llm_engine_up")) == 2


@pytest.mark.parametrize(
    "name, tokens", [("vllm-0.6.6", 32768), ("vllm-0.9.0", 32768), ("vllm-0.32.0", 32768)]
)
def test_kv_capacity_is_stated_or_blocks_times_block_size(name, tokens, translated):
    """2048 blocks of 16 tokens, whether the version states the product or not."""
    body, _, version = load(name)
    assert translated(body, version).page.one("llm_kv_cache_capacity_tokens", dp_rank="0") == tokens


def test_kv_capacity_of_old_ranks_is_unknown(translated):
    """0.10.2 states the blocks of all ranks together: no rank's share can be told, so none is published."""
    body, _, version = load("vllm-0.10.2-dp2")
    assert translated(body, version).page.values("llm_kv_cache_capacity_tokens") == []
