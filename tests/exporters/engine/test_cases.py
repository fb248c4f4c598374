"""Failures seen in the field, each with a small input and the right answer."""

import json

import pytest

from exporters.engine.labels import LabelCache
from exporters.engine.probe_error import ProbeError
from exporters.engine.translate import translate
from exporters.engine.vllm import ADAPTER


def reason_of(body, version="0.32.0"):
    """Why a page is not translated."""
    with pytest.raises(ProbeError) as caught:
        translate(body, ADAPTER, LabelCache(), version, 20_000)
    return caught.value.reason


def test_a01_a_restart_goes_through_as_it_is(case, translated):
    """Totals fall from 1000 to 200 and stay visible as a reset; the empty page after is a failed probe."""
    before, after = (translated(case("A01", f"scrape_{at}.txt")).page for at in ("t000", "t060"))
    expected = json.loads(case("A01", "expected.json"))["t000_to_t060"]
    assert before.one("llm_prompt_tokens_total") == 1000
    assert after.one("llm_prompt_tokens_total") == expected["prompt_tokens"]
    assert after.one("llm_generation_tokens_total") == expected["generation_tokens"]
    assert after.one("llm_requests_total") == expected["requests"]
    assert reason_of(case("A01", "scrape_t120.txt")) == "no_engine_metrics"


def test_a03_eight_process_copies_become_one_gauge(case, translated):
    """The largest copy is the truth; no pid goes through."""
    page = translated(case("A03", "metrics.txt"), "0.10.0").page
    expected = json.loads(case("A03", "expected.json"))
    assert page.values("llm_kv_cache_usage_ratio") == [expected["kv_cache_usage"]]
    assert page.labels("llm_kv_cache_usage_ratio") == [{"model": "chat-a", "dp_rank": "0"}]


def test_a05_two_ranks_stay_two_series(case, translated):
    """Sums, maximum and mean over ranks can be taken because each rank has its own series."""
    page = translated(case("A05", "metrics.txt")).page
    expected = json.loads(case("A05", "expected.json"))
    assert page.total("llm_requests_running") == expected["running"]
    assert page.total("llm_requests_waiting") == expected["waiting"]
    usage = page.values("llm_kv_cache_usage_ratio")
    assert max(usage) == expected["kv_max"]
    assert sum(usage) / len(usage) == pytest.approx(expected["kv_mean"])
    ttft = "llm_time_to_first_token_seconds"
    assert page.total(f"{ttft}_sum") / page.total(f"{ttft}_count") == pytest.approx(expected["ttft_mean_s"])


@pytest.mark.parametrize(
    ("exported", "usage"),
    [({"gpu": 0.8}, 0.8), ({"gpu": 0.6, "kv": 0.6}, 0.6), ({"kv": 0.4}, 0.4), ({"gpu": 0, "kv": 0.6}, 0.6)],
)
@pytest.mark.parametrize("order", [1, -1])
def test_a06_the_kv_gauge_has_one_value_under_either_name(translated, exported, usage, order):
    """Case A06: replicas a, b and c of a roll-out, in either order of lines; the new name wins, process copies too."""
    line = 'vllm:{}_cache_usage_perc{{engine="0",model_name="m",pid="{}"}} {}\n'
    lines = [line.format(name, pid, value) for name, value in exported.items() for pid in (7, 8)]
    page = translated("".join(lines[::order]).encode()).page
    assert page.values("llm_kv_cache_usage_ratio") == [usage]
    assert page.labels("llm_kv_cache_usage_ratio") == [{"model": "m", "dp_rank": "0"}]


@pytest.mark.parametrize("order", [1, -1])
def test_a06_replicas_of_two_versions_on_one_page_of_ray(translated, order):
    """Cases A06, A07 and A77 on one page: each replica has its values, under whichever names its version writes."""
    old = '{engine="0",model_name="m",ReplicaId="old"%s}'
    new = old.replace("old", "new")
    samples = [
        ("gpu_cache_usage_perc", old % "", 0.8), ("kv_cache_usage_perc", new % "", 0.4),
        ("num_requests_waiting", old % "", 3),
        ("num_requests_waiting_by_reason", new % ',reason="capacity"', 4),
        ("num_requests_waiting_by_reason", new % ',reason="deferred"', 5),
        ("generation_tokens", old % "", 70), ("generation_tokens_total", new % "", 80),
    ]  # fmt: skip
    for stem, who, count in (("time_per_output_token", old, 400), ("inter_token_latency", new, 300)):
        samples += [
            (f"{stem}_seconds_bucket", who % ',le="0.05"', count - 100),
            (f"{stem}_seconds_bucket", who % ',le="+Inf"', count),
            (f"{stem}_seconds_sum", who % "", 20), (f"{stem}_seconds_count", who % "", count),
        ]  # fmt: skip
    lines = [f"ray_vllm_{name}{labels} {value}\n" for name, labels, value in samples][::order]
    page = translated("".join(lines).encode()).page
    for name, of_old, of_new in (
        ("llm_kv_cache_usage_ratio", 0.8, 0.4),
        ("llm_requests_waiting", 3, 9),
        ("llm_generation_tokens_total", 70, 80),
        ("llm_inter_token_latency_seconds_count", 400, 300),
    ):
        assert page.one(name, dp_rank="old/0") == of_old
        assert page.one(name, dp_rank="new/0") == of_new
    assert page.one("llm_inter_token_latency_seconds_bucket", dp_rank="old/0", le="0.05") == 300


@pytest.mark.parametrize("version", ["v0.10", "v0.11", "v0.13"])
def test_a07_gaps_and_per_request_means_are_kept_apart(case, translated, version):
    """400 gaps in each version, never 800; the per-request mean is absent where the version has none."""
    page = translated(case("A07", f"{version}.txt")).page
    expected = json.loads(case("A07", "expected.json"))
    for key, family in (
        ("itl", "llm_inter_token_latency_seconds"),
        ("tpot", "llm_time_per_output_token_seconds"),
    ):
        count, total = page.total(f"{family}_count"), page.total(f"{family}_sum")
        got = None if count is None else [count, total / count]
        assert got == expected[key][version]


def test_a08_counters_are_found_with_and_without_total(case, translated):
    """The hit ratio is 0.8926 under either spelling, and absent when nothing matches."""
    body = case("A08", "metrics.txt")
    expected = json.loads(case("A08", "expected.json"))
    for text in (body, body.replace(b"_total", b"")):
        page = translated(text).page
        ratio = page.one("llm_prefix_cache_hit_tokens_total") / page.one(
            "llm_prefix_cache_queried_tokens_total"
        )
        assert ratio == expected["ratio"]
    other = translated(b'vllm:num_requests_running{engine="0",model_name="m"} 1.0\n').page
    assert other.total("llm_prefix_cache_hit_tokens_total") is expected["if_no_series"]


@pytest.mark.parametrize("name", ["empty", "help_only", "process_only"])
def test_a13_a_200_without_engine_metrics_is_a_failure(case, name):
    """Three bodies that Prometheus would call up are told apart from an idle engine."""
    assert reason_of(case("A13", f"{name}.txt")) == "no_engine_metrics"


def test_a14_reasons_keep_success_and_the_rest_apart(case, translated):
    """(stop + length) / all = 0.95; aborts and errors are finished, but not well."""
    page = translated(case("A14", "metrics.txt")).page
    well = sum(page.one("llm_requests_total", finish_reason=reason) for reason in ("stop", "length"))
    assert (
        well / page.total("llm_requests_total") == json.loads(case("A14", "expected.json"))["success_ratio"]
    )


def test_a17_start_times_are_dropped(case, translated):
    """No *_created comes out, so no value is above 32."""
    page = translated(case("A17", "metrics.txt")).page
    assert page.one("llm_prefix_cache_queried_tokens_total") == 32
    assert max(s.value for s in page.samples) == json.loads(case("A17", "expected.json"))["max_value"]


def test_a18_the_newest_lora_combination_is_the_state(case, translated):
    """running = {sql, fr}, waiting = {}, at most 4; the time stamp is never a value."""
    engine = b'vllm:num_requests_running{engine="0",model_name="m"} 2.0\n'
    page = translated(engine + case("A18", "metrics.txt")).page
    expected = json.loads(case("A18", "expected.json"))
    states = [(s["adapter"], s["state"]) for s in page.labels("llm_lora_adapter_info")]
    assert states == [(adapter, "running") for adapter in expected["running"]]
    assert page.one("llm_lora_adapters_waiting") == len(expected["waiting"])
    assert page.one("llm_lora_adapters_limit") == expected["max_lora"]
    assert max(s.value for s in page.samples) < 1e9


def test_a19_a_mapping_gives_a_model_its_one_name(case, translated):
    """A path as model name becomes the published name; without the mapping it goes through, slashes and all."""
    body = case("A19", "engine.txt")
    mapping = json.loads(case("A19", "mapping.json"))
    aliases = {alias: model for model, names in mapping.items() for alias in names}
    expected = json.loads(case("A19", "expected.json"))["chat-large"]
    assert (
        translated(body, aliases=aliases).page.one("llm_requests_running", model="chat-large")
        == expected["running"]
    )
    assert (
        translated(body).page.one("llm_requests_running", model="/models/llama-70b/") == expected["running"]
    )


def test_a22_falling_totals_never_raise(case, translated):
    """Totals 100, 120, 90, 95 come out as 100, 120, 90, 95."""
    totals = json.loads(case("A22", "totals.json"))
    line = b'vllm:prompt_tokens_total{engine="0",model_name="m"} %d\n'
    got = [translated(line % total).page.one("llm_prompt_tokens_total") for total in totals]
    assert got in json.loads(case("A22", "expected.json"))["acceptable"]


def test_a23_labels_survive_the_round_trip(case, translated):
    """Backslash, quote, newline, UTF-8 and the empty value arrive in a parser as they were sent."""
    expected = json.loads(case("A23", "expected.json"))["escaped"]
    for value, escaped in zip(json.loads(case("A23", "labels.json")), expected, strict=True):
        line = (
            f'vllm:request_success_total{{engine="0",finished_reason="{escaped}",model_name="{escaped}"}} 7\n'
        )
        page = translated(line.encode()).page
        (labels,) = page.labels("llm_requests_total")
        assert labels["finish_reason"] == value
        assert labels.get("model", "") == value


def test_a23_one_bad_line_costs_that_line(case, translated):
    """The lines around a bad escape are kept and one parse error is counted."""
    body = case("A23", "broken_input.txt")
    for letter, name in (
        (b"a", b"num_requests_running"),
        (b"b", b"num_requests_waiting"),
        (b"c", b"num_preemptions_total"),
    ):
        body = body.replace(b"up_%b{x=" % letter, b'vllm:%b{engine="0",model_name=' % name)
    result = translated(body)
    assert (
        result.reading.parse_errors
        == json.loads(case("A23", "expected.json"))["broken_input"]["parse_errors"]
    )
    assert result.page.one("llm_requests_running", model="1") == 1
    assert result.page.one("llm_preemptions_total", model="3") == 3
    assert result.page.values("llm_requests_waiting") == []


@pytest.mark.parametrize(("written", "bound"), [("1", "1.0"), ("1.0", "1.0"), ("0.5", "0.5"), ("10", "10.0")])
@pytest.mark.parametrize("last", ["+Inf", "Inf", "inf"])
def test_a25_a_bound_has_one_spelling(translated, written, bound, last):
    """Case A25: le="1" comes out as Prometheus 3 would store it, so that engines written differently can be summed."""
    lines = [
        f'vllm:time_to_first_token_seconds_{part}{{engine="0",model_name="m"{le}}} {value}'
        for part, le, value in (
            ("bucket", f',le="{written}"', 90),
            ("bucket", f',le="{last}"', 100),
            ("sum", "", 70),
            ("count", "", 100),
        )
    ]
    page = translated("\n".join([*lines, ""]).encode()).page
    assert [labels["le"] for labels in page.labels("llm_time_to_first_token_seconds_bucket")] == [
        bound,
        "+Inf",
    ]
    assert page.one("llm_time_to_first_token_seconds_bucket", le=bound) == 90


def test_a67_two_pages_in_one_are_regrouped(translated):
    """Case A67: HELP and TYPE twice, engines 0 and 1 apart; one TYPE comes out, with both."""
    block = '# HELP {0} Running.\n# TYPE {0} gauge\n{0}{{engine="{1}",model_name="m"}} {2}\n'
    body = "".join(block.format("vllm:num_requests_running", rank, 40 + rank) for rank in (0, 1))
    text = translated(body.encode()).page.text
    assert text.count("# TYPE llm_requests_running gauge\n") == 1
    assert (
        'llm_requests_running{model="m",dp_rank="0"} 40\nllm_requests_running{model="m",dp_rank="1"} 41\n'
        in text
    )


@pytest.mark.parametrize("name", ["no_newline", "dup_sample"])
def test_a67_a_page_cut_off_or_contradicting_itself_is_not_believed(case, name):
    """Case A67: without its final newline "1" may be half of 10; one series with two values has none."""
    start = b'vllm:num_requests_running{engine="0",model_name="m",x="0"} 5\n'
    body = start + case("A67", f"{name}.txt").replace(
        b"b{x=", b'vllm:num_requests_running{engine="0",x='
    ).replace(b"\na 1", b'\nvllm:num_requests_running{engine="0",model_name="m",x="1"} 1')
    assert reason_of(body) == "malformed"


@pytest.mark.parametrize("name", ["both", "total_only", "by_reason_only"])
def test_a77_waiting_is_counted_once(case, translated, name):
    """72 wait and 96 are outstanding, whether the page has the total, the reasons or both."""
    page = translated(case("A77", f"{name}.txt")).page
    expected = json.loads(case("A77", "expected.json"))
    assert page.total("llm_requests_waiting") == expected["waiting"]
    assert page.total("llm_requests_running") + page.total("llm_requests_waiting") == expected["outstanding"]


def test_a77_a_reason_of_the_future_is_added_too(case, translated):
    """An unknown reason counts as waiting."""
    more = b'vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="moon"} 5.0\n'
    assert translated(case("A77", "by_reason_only.txt") + more).page.one("llm_requests_waiting") == 77
