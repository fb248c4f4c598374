"""Recordings of real engines: every number out equals the number in, read by an independent parser."""

import re
from collections import defaultdict

import pytest
from prometheus_client.parser import text_string_to_metric_families

PAIRS = {
    "time_to_first_token_seconds": "llm_time_to_first_token_seconds",
    "inter_token_latency_seconds": "llm_inter_token_latency_seconds",
    "request_time_per_output_token_seconds": "llm_time_per_output_token_seconds",
    "e2e_request_latency_seconds": "llm_request_duration_seconds",
    "request_queue_time_seconds": "llm_request_queue_seconds",
    "request_prefill_time_seconds": "llm_request_prefill_seconds",
    "request_decode_time_seconds": "llm_request_decode_seconds",
    "iteration_tokens_total": "llm_iteration_tokens",
    "request_prompt_tokens": "llm_request_prompt_tokens",
    "request_generation_tokens": "llm_request_generation_tokens",
}
CAPTURES = [
    "vllm-0.32.0-cpu-metrics_idle",
    "vllm-0.32.0-cpu-metrics_light",
    "vllm-0.32.0-cpu-overload_000",
    "vllm-0.32.0-cpu-overload_008",
    "vllm-0.32.0-cpu-metrics_after",
    "vllm-0.32.0-cpu-metrics_restart",
    "vllm-0.32.0-cpu-preempt_005",
    "vllm-0.32.0-cpu-metrics_preempt_after",
    "vllm-0.32.0-cpu-metrics_dp2_idle",
    "vllm-0.32.0-cpu-dp2_001",
    "vllm-0.32.0-cpu-metrics_dp2_after",
    "vllm-0.32.0-cpu-metrics_mp_idle",
    "vllm-0.32.0-cpu-metrics_mp_after",
    "vllm-0.32.0-cpu-lora_001",
    "vllm-0.32.0-cpu-metrics_admission",
    "vllm-0.32.0-cpu-metrics_sleeping",
    "vllm-0.32.0-cpu-metrics_slash_openmetrics",
    "vllm-0.32.0-cpu-metrics_slash_om_utf8",
    "vllm-0.26.0-h200-step",
    "vllm-0.26.0-h200-after",
    "vllm-0.26.0-h200-lora",
    "vllm-0.26.0-h200-spec",
]


def engine_samples(body):
    """(name without prefix, labels) -> value, as prometheus_client reads the recording itself."""
    text = body.decode().replace("# EOF\n", "")
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = re.sub(r"^vllm[:_]", "", sample.name)
            found[name, frozenset(sample.labels.items())] = sample.value
    return found


@pytest.mark.parametrize("name", CAPTURES)
def test_histograms_come_out_bucket_by_bucket(name, capture, translated):
    """Each bucket, sum and count of each histogram is there once, bounds and values unchanged."""
    body = capture(name)
    page = translated(body, openmetrics="openmetrics" in name or "_om_" in name).page
    ours = {(s.name, frozenset(s.labels.items())): s.value for s in page.samples}
    checked = 0
    for (source, labels), value in engine_samples(body).items():
        stem, suffix = re.fullmatch(r"(.*?)(_bucket|_sum|_count|)", source).groups()
        if stem not in PAIRS or not suffix:
            continue
        pairs = dict(labels)
        want = {"model": pairs["model_name"], "dp_rank": pairs["engine"]}
        want |= {"le": pairs["le"]} if "le" in pairs else {}
        assert ours.pop((PAIRS[stem] + suffix, frozenset(want.items()))) == value
        checked += 1
    assert checked >= 150
    left = [name for name, _ in ours if name.endswith(("_bucket", "_sum", "_count"))]
    assert left == []


@pytest.mark.parametrize("name", CAPTURES)
def test_http_counts_come_out_by_handler_and_code(name, capture, translated):
    """Counts of one handler and code class are added over methods; the only model is named on them."""
    body = capture(name)
    page = translated(body, openmetrics="openmetrics" in name or "_om_" in name).page
    want = defaultdict(float)
    for (source, labels), value in engine_samples(body).items():
        if source == "http_requests_total":
            want[dict(labels)["handler"], dict(labels)["status"]] += value
    got = {(s["handler"], s["code"]): s["model"] for s in page.labels("llm_http_requests_total")}
    assert got == dict.fromkeys(want, "tiny" if "cpu" in name else got[next(iter(got))] if got else "")
    for (handler, code), value in want.items():
        assert page.one("llm_http_requests_total", handler=handler, code=code) == value


def test_overload_is_seen_as_it_was_recorded(capture, translated):
    """64 clients on 8 slots: 8 run, 59 wait, 891 first tokens, 852 finished (3 stop, 849 length)."""
    page = translated(capture("vllm-0.32.0-cpu-overload_008")).page
    assert page.one("llm_requests_running", model="tiny", dp_rank="0") == 8
    assert page.one("llm_requests_waiting", model="tiny", dp_rank="0") == 59
    assert page.one("llm_time_to_first_token_seconds_count") == 891
    assert page.one("llm_requests_total", finish_reason="stop") == 3
    assert page.one("llm_requests_total", finish_reason="length") == 849
    assert page.one("llm_kv_cache_capacity_tokens") == 32768  # 256 blocks of 128


def test_preemptions_and_kv_pressure(capture, translated):
    """64 blocks of KV cache under long outputs: 54 preemptions so far, 71 % of KV held."""
    page = translated(capture("vllm-0.32.0-cpu-preempt_005")).page
    assert page.one("llm_preemptions_total") == 54
    assert page.one("llm_kv_cache_usage_ratio") == 0.7142857142857143
    assert page.one("llm_kv_cache_capacity_tokens") == 8192  # 64 blocks of 128


def test_data_parallel_ranks_stay_apart(capture, translated):
    """Two ranks: their own running, waiting, tokens and capacity; server-wide counters carry no rank."""
    page = translated(capture("vllm-0.32.0-cpu-dp2_001")).page
    for rank, waiting, prompt in (("0", 5, 37936), ("1", 3, 41925)):
        assert page.one("llm_requests_running", dp_rank=rank) == 7
        assert page.one("llm_requests_waiting", dp_rank=rank) == waiting
        assert page.one("llm_prompt_tokens_total", dp_rank=rank) == prompt
        assert page.one("llm_engine_up", dp_rank=rank) == 1
        # 128 blocks of 128: the recorded usage 0.2992… is 38/127, a share of one rank's own blocks
        assert page.one("llm_kv_cache_capacity_tokens", dp_rank=rank) == 16384
    assert all("dp_rank" not in labels for labels in page.labels("llm_http_requests_total"))
    assert all("dp_rank" not in labels for labels in page.labels("llm_admission_rejections_total"))


def test_admission_rejections_are_counted_by_reason(capture, translated):
    """3425 attempts refused by the request limit, none by the token limit."""
    page = translated(capture("vllm-0.32.0-cpu-metrics_admission")).page
    assert page.one("llm_admission_rejections_total", reason="max_num_queued_reqs", model="tiny") == 3425
    assert page.one("llm_admission_rejections_total", reason="max_num_queued_tokens", model="tiny") == 0
    assert page.one("llm_http_requests_total", handler="/v1/completions", code="5xx") == 1318


def test_a_sleeping_engine_says_so(capture, translated):
    """Asleep is 1 while weights are offloaded, 0 in every other recording."""
    assert translated(capture("vllm-0.32.0-cpu-metrics_sleeping")).page.one("llm_engine_sleeping") == 1
    assert translated(capture("vllm-0.32.0-cpu-metrics_light")).page.one("llm_engine_sleeping") == 0


def test_lora_is_the_newest_combination(capture, translated):
    """After the load, the entry with the latest time is the empty one: nothing runs, nothing waits."""
    page = translated(capture("vllm-0.32.0-cpu-metrics_lora_after")).page
    assert page.one("llm_lora_adapters_running", model="tiny") == 0
    assert page.one("llm_lora_adapters_waiting") == 0
    assert page.one("llm_lora_adapters_limit") == 1
    assert page.labels("llm_lora_adapter_info") == []
    during = translated(capture("vllm-0.32.0-cpu-lora_002")).page
    assert [(s["adapter"], s["state"]) for s in during.labels("llm_lora_adapter_info")] == [
        ("lora-b", "running"),
        ("lora-b", "waiting"),
    ]


def test_an_engine_without_lora_has_no_lora_series(capture, translated):
    """LoRA series are absent, not 0, where LoRA is not configured."""
    page = translated(capture("vllm-0.32.0-cpu-metrics_light")).page
    assert not [s for s in page.samples if s.name.startswith("llm_lora")]


def test_a_restart_shows_as_a_fall(capture, translated):
    """Counters are passed through, so a restarted engine's are lower than before."""
    before = translated(capture("vllm-0.32.0-cpu-metrics_after")).page.one("llm_prompt_tokens_total")
    after = translated(capture("vllm-0.32.0-cpu-metrics_restart")).page.one("llm_prompt_tokens_total")
    assert after == 52322
    assert before > 315489


def test_both_spellings_of_one_engine_agree(capture, translated):
    """The OpenMetrics spelling (vllm_*) of an idle engine yields the same families as vllm:* text."""
    underscored = translated(capture("vllm-0.32.0-cpu-metrics_slash_openmetrics"), openmetrics=True).page
    colons = translated(capture("vllm-0.32.0-cpu-metrics_light")).page
    assert {s.name for s in underscored.samples} == {s.name for s in colons.samples}
    assert underscored.one("llm_prompt_tokens_total") == 315489


def test_values_keep_the_engine_s_own_digits(capture, translated):
    """A value goes through as text: no digit is lost or added."""
    text = translated(capture("vllm-0.32.0-cpu-metrics_light")).page.text
    assert 'llm_inter_token_latency_seconds_sum{model="tiny",dp_rank="0"} 90.98724370600155\n' in text
