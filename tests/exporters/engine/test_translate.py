"""Whole or nothing: pages that are cut off, contradict themselves or hold other people's metrics."""

import re

import pytest

from exporters.engine.labels import LabelCache
from exporters.engine.probe_error import ProbeError
from exporters.engine.translate import translate
from exporters.engine.vllm import ADAPTER

RUNNING = b'vllm:num_requests_running{engine="0",model_name="m"} 3.0\n'
PREEMPTIONS = b'vllm:num_preemptions_total{engine="0",model_name="m"} %b\n'


def histogram(buckets, total=b"1.5", count=None, name=b"e2e_request_latency_seconds", extra=b""):
    """A histogram's lines from (bound, count) pairs."""
    labels = b'engine="0",' + extra + b'model_name="m"'
    lines = [b'vllm:%b_bucket{le="%b",%b} %b\n' % (name, bound, labels, value) for bound, value in buckets]
    lines.append(b"vllm:%b_sum{%b} %b\n" % (name, labels, total))
    lines.append(b"vllm:%b_count{%b} %b\n" % (name, labels, count or buckets[-1][1]))
    return b"".join(lines)


GOOD = histogram([(b"0.3", b"1"), (b"0.5", b"2"), (b"+Inf", b"4")])


def failure(body, **kwargs):
    """The ProbeError that a page ends in."""
    with pytest.raises(ProbeError) as caught:
        translate(
            body,
            ADAPTER,
            LabelCache(),
            kwargs.pop("version", "0.32.0"),
            kwargs.pop("max_series", 20_000),
            **kwargs,
        )
    return caught.value


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (RUNNING + b'vllm:num_requests_waiting{engine="0",mod', "cut off"),
        (RUNNING[:-1], "cut off"),
        (RUNNING + PREEMPTIONS % b"-1", "negative count"),
        (RUNNING + histogram([(b"0.3", b"5"), (b"0.5", b"4"), (b"+Inf", b"9")]), "fall with a rising bound"),
        (RUNNING + histogram([(b"0.3", b"1"), (b"0.5", b"2")]), r"without its \+Inf"),
        (RUNNING + histogram([(b"0.3", b"1"), (b"+Inf", b"2")], count=b"3"), r"differs from the \+Inf"),
        (RUNNING + histogram([(b"0.3", b"-1"), (b"+Inf", b"2")]), "negative count"),
        (
            GOOD.replace(b"e2e_request_latency_seconds_sum", b"x_sum"),
            "without its buckets, its sum or its count",
        ),
        (RUNNING + RUNNING, "holds one series twice"),
        (PREEMPTIONS % b"5" + PREEMPTIONS % b"5", "holds one series twice"),
    ],
)
def test_a_page_that_cannot_be_trusted_is_malformed(body, why):
    """Each contradiction fails the probe as a whole and says which one it is."""
    error = failure(body)
    assert error.reason == "malformed"
    assert re.search(why, error.detail), error.detail


def test_an_openmetrics_page_must_end_in_eof(translated):
    """OpenMetrics without its last line is cut off; with it, a missing final newline is no matter."""
    assert failure(RUNNING, openmetrics=True).reason == "malformed"
    page = translated(RUNNING + b"# EOF", openmetrics=True).page
    assert page.one("llm_requests_running") == 3


def test_timestamps_and_exemplars_are_dropped(translated):
    """What may follow a value in either format does not go through; the value does."""
    body = RUNNING.replace(b" 3.0\n", b" 3.0 1700000000000\n") + GOOD.replace(
        b'"0.5",engine="0",model_name="m"} 2',
        b'"0.5",engine="0",model_name="m"} 2 # {trace_id="a} b"} 0.4 1.7e9',
    )
    page = translated(body).page
    assert page.one("llm_requests_running") == 3
    assert page.one("llm_request_duration_seconds_bucket", le="0.5") == 2
    assert "1700000000000" not in page.text
    assert "trace_id" not in page.text


def test_gauges_that_say_nothing_are_absent(translated):
    """NaN and infinities of a gauge mean unknown: no sample, never 0."""
    for value in (b"NaN", b"+Inf", b"-Inf"):
        page = translated(RUNNING + b'vllm:kv_cache_usage_perc{engine="0",model_name="m"} %b\n' % value).page
        assert page.values("llm_kv_cache_usage_ratio") == []
        assert page.one("llm_requests_running") == 3


def test_a_histogram_with_an_unreadable_line_is_left_out_alone(translated):
    """A hole would move quantiles: the family is absent, the rest stays, one parse error is counted."""
    broken = GOOD.replace(
        b'le="0.5",engine="0",model_name="m"} 2', b'le="0.5",engine="0",model_name="m"} two'
    )
    result = translated(RUNNING + broken)
    assert result.page.values("llm_request_duration_seconds_count") == []
    assert result.page.one("llm_requests_running") == 3
    assert result.reading.parse_errors == 1


@pytest.mark.parametrize("bound", [b"0.5\\n", b"2.\t5", b"NaN", b"half", b""])
def test_a_bound_that_is_no_number_costs_its_family(bound, translated):
    """Prometheus would refuse the whole page for it: the family is left out instead."""
    result = translated(RUNNING + GOOD.replace(b'le="0.5"', b'le="%b"' % bound))
    assert result.page.values("llm_request_duration_seconds_count") == []
    assert result.page.one("llm_requests_running") == 3
    assert result.reading.parse_errors == 1


def test_ten_unreadable_lines_are_borne_and_eleven_are_not(translated):
    """Up to ten lines are left out and counted; beyond that the page is malformed."""
    bad = b'vllm:num_requests_waiting{engine="%d",model_name="\\q"} 1\n'
    ten = b"".join(bad % at for at in range(10))
    assert translated(RUNNING + ten).reading.parse_errors == 10
    error = failure(RUNNING + ten + bad % 10)
    assert error.reason == "malformed"
    assert "an escape other than" in error.detail


@pytest.mark.parametrize("value", [b"1_0", b"0x10", b"", b"1,5", b"one"])
def test_what_is_no_number_to_prometheus_is_no_number_here(value, translated):
    """Python would read 1_0 as ten; a scrape with it would be refused as a whole."""
    result = translated(RUNNING + PREEMPTIONS % value)
    assert result.page.values("llm_preemptions_total") == []
    assert result.reading.parse_errors == 1


def test_copies_of_processes_are_merged_exactly(translated):
    """Counters and histograms of two processes add up (equal values too); of a gauge the largest counts."""
    body = b""
    for pid, running, count in ((b"7", b"0", b"5"), (b"8", b"4", b"5")):
        pid_label = b'pid="%b",' % pid
        body += RUNNING.replace(b"model", pid_label + b"model").replace(b"3.0", running)
        body += (PREEMPTIONS % count).replace(b"model", pid_label + b"model")
        body += histogram([(b"0.3", b"1"), (b"+Inf", b"2")], total=b"0.5", extra=pid_label)
    page = translated(body).page
    assert page.one("llm_requests_running") == 4
    assert page.one("llm_preemptions_total") == 10
    assert page.one("llm_request_duration_seconds_bucket", le="0.3") == 2
    assert page.one("llm_request_duration_seconds_bucket", le="+Inf") == 4
    assert page.one("llm_request_duration_seconds_sum") == 1.0
    assert page.one("llm_request_duration_seconds_count") == 4


def test_http_counts_of_two_methods_are_added(translated):
    """GET and POST to one handler are one series, since the method is not published."""
    line = b'http_requests_total{handler="/x",method="%b",status="2xx"} %d\n'
    page = translated(RUNNING + line % (b"GET", 5) + line % (b"POST", 5)).page
    assert page.one("llm_http_requests_total", model="m", handler="/x", code="2xx") == 10


def test_http_counts_alone_are_no_engine(translated):
    """Any FastAPI server has them; without an engine family the probe fails."""
    assert (
        failure(b'http_requests_total{handler="/x",method="GET",status="2xx"} 5\n').reason
        == "no_engine_metrics"
    )


def test_two_models_leave_server_wide_counters_unnamed(translated):
    """With more than one model the HTTP counters belong to none of them."""
    other = RUNNING.replace(b'"m"', b'"n"').replace(b'"0"', b'"1"')
    page = translated(
        RUNNING + other + b'http_requests_total{handler="/x",method="GET",status="2xx"} 5\n'
    ).page
    assert page.labels("llm_http_requests_total") == [{"handler": "/x", "code": "2xx"}]
    assert {labels["model"] for labels in page.labels("llm_engine_up")} == {"m", "n"}


def test_a_router_s_copy_of_engine_gauges_is_not_an_engine(translated):
    """The production-stack router re-exports the same names keyed by `server`: counting it would double."""
    line = b'vllm:num_requests_running{server="http://10.0.0.5:8000"} 3.0\n'
    assert failure(line).reason == "no_engine_metrics"
    assert translated(line + RUNNING).page.values("llm_requests_running") == [3]


def test_a_server_without_labels_is_read(translated):
    """No model and no rank on the page: rank 0, no model label."""
    page = translated(b"vllm:num_requests_running 3\nvllm:num_requests_waiting{} 1\n").page
    assert page.labels("llm_requests_running") == [{"dp_rank": "0"}]
    assert page.one("llm_requests_waiting") == 1


def test_lora_times_added_up_over_processes_are_not_a_state(translated):
    """In multiprocess mode the times are summed (3.6e9 is two of 1.8e9): which is newest is unknown."""
    line = b'vllm:lora_requests_info{max_lora="2",running_lora_adapters="a",waiting_lora_adapters=""} %b\n'
    assert translated(RUNNING + line % b"3.6e+09").page.values("llm_lora_adapters_running") == []
    assert translated(RUNNING + line % b"1.8e+09").page.values("llm_lora_adapters_running") == [1]


def test_too_many_series_or_lines_are_too_large():
    """Limits count published series, and lines at ten a series."""
    lines = b"".join(RUNNING.replace(b'"0"', b'"%d"' % rank) for rank in range(60))
    assert failure(lines, max_series=100).reason == "too_large"  # 60 gauges and 60 cores
    assert failure(RUNNING + b"#\n" * 100, max_series=10).reason == "too_large"


def test_windows_line_ends_are_read(translated):
    """A proxy that rewrites line ends costs nothing."""
    assert translated((RUNNING + GOOD).replace(b"\n", b"\r\n")).page.one("llm_requests_running") == 3


def test_series_with_buckets_in_another_order_are_whole(translated):
    """Order is the writer's business: only what the numbers say is checked."""
    shuffled = histogram([(b"+Inf", b"4"), (b"0.3", b"1"), (b"0.5", b"2")], count=b"4")
    assert translated(shuffled).page.one("llm_request_duration_seconds_count") == 4


def test_own_output_has_one_type_a_family_and_unique_series(capture, translated):
    """One TYPE per family, samples grouped under it, unique label sets, a final newline."""
    text = translated(capture("vllm-0.32.0-cpu-metrics_dp2_after")).page.text
    lines = text.splitlines()
    types = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(types) == len(set(types))
    series = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
    assert len(series) == len(set(series))
    assert text.endswith("\n")
    family = ""
    for line in lines:
        if line.startswith("# TYPE"):
            family = line.split()[2]
        elif not line.startswith("#"):
            assert line.startswith(family)
