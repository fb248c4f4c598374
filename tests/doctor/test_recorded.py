"""Recordings of real engines in known conditions: what the doctor finds in each, and what it does not."""

import gzip
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from inferwatch.doctor import load_checks, page, settings_checks
from inferwatch.doctor.evidence import Answer, Evidence
from inferwatch.doctor.finding import Finding
from inferwatch.doctor.page import Histogram, Page
from inferwatch.doctor.process import ServerProcess, parse
from slo import spec as slo_spec

CAPTURES = Path(__file__).resolve().parents[1] / "fixtures" / "engine" / "captures"
SPEC = slo_spec.load()


def capture(name: str) -> Page:
    """A recorded page."""
    return page.parse(gzip.decompress((CAPTURES / f"{name}.txt.gz").read_bytes()).decode())


def seen(
    *pages: Page, flags: Mapping[str, str] | None = None, version: str = "0.32.0", token: int = 200
) -> Evidence:
    """An engine that showed *pages* and, with *flags*, runs on this host."""
    return Evidence(
        url="http://127.0.0.1:8000",
        version=version,
        model="tiny",
        max_model_len=4096,
        pages=pages,
        health={"/health": 200, "/ping": 200},
        token=Answer(token, "{}", 0.1),
        request_id="r",
        trace_id="t",
        process=None if flags is None else ServerProcess(1, flags, "/m", "vllm serve /m"),
    )


def state(finding: Finding) -> str:
    """The state; a fault must say why and what to set."""
    assert finding.evidence
    assert (finding.state == "fault") == bool(finding.why and finding.mend)
    return finding.state


@pytest.mark.parametrize(
    ("name", "check", "expected"),
    [
        ("vllm-0.32.0-cpu-metrics_light", settings_checks.prefix_caching, "ok"),
        ("vllm-0.32.0-cpu-lora_002", settings_checks.adapters, "fault"),
        ("vllm-0.32.0-cpu-metrics_light", settings_checks.adapters, "ok"),
        ("vllm-0.32.0-cpu-metrics_mp_after", settings_checks.several_processes, "fault"),
        ("vllm-0.32.0-cpu-metrics_dp2_after", settings_checks.several_processes, "fault"),
        ("vllm-0.32.0-cpu-metrics_light", settings_checks.several_processes, "ok"),
        ("vllm-0.26.0-h200-after", settings_checks.several_processes, "ok"),
    ],
)
def test_settings_in_recordings(name: str, check: Callable[[Evidence], Finding], expected: str) -> None:
    """LoRA series, several API servers and data-parallel ranks are told; single engines are left alone."""
    assert state(check(seen(capture(name)))) == expected


@pytest.mark.parametrize(
    ("name", "check", "expected"),
    [
        ("vllm-0.32.0-cpu-metrics_preempt_after", load_checks.kv_size, "fault"),
        ("vllm-0.32.0-cpu-metrics_after", load_checks.kv_size, "ok"),
        ("vllm-0.32.0-cpu-metrics_idle", load_checks.kv_size, "unknown"),
        ("vllm-0.32.0-cpu-overload_008", load_checks.batch_limit, "fault"),
        ("vllm-0.32.0-cpu-preempt_005", load_checks.batch_limit, "ok"),
        ("vllm-0.32.0-cpu-metrics_idle", load_checks.batch_limit, "unknown"),
        ("vllm-0.26.0-h200-after", load_checks.bucket_floor, "fault"),
    ],
)
def test_load_in_recordings(
    name: str, check: Callable[[Evidence, slo_spec.Spec], Finding], expected: str
) -> None:
    """Preemptions, a queue beside a free KV cache and coarse buckets are faults; an idle engine is unknown."""
    recorded = capture(name)
    assert state(check(seen(recorded, recorded), SPEC)) == expected


def test_prefix_caching_that_is_off_names_its_flag() -> None:
    """The label of the engine's own configuration decides."""
    off = page.parse(
        '# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{enable_prefix_caching="False"} 1\n'
    )
    finding = settings_checks.prefix_caching(seen(off))

    assert (finding.state, finding.mend) == ("fault", "--enable-prefix-caching")
    assert state(settings_checks.prefix_caching(seen())) == "unknown"


@pytest.mark.parametrize(
    ("flags", "version", "expected", "mend"),
    [
        (None, "0.32.0", "unknown", ""),
        ({"max-num-queued-reqs": "64"}, "0.32.0", "ok", ""),
        ({"max-num-queued-tokens": "9000"}, "0.32.0", "ok", ""),
        ({"port": "1"}, "0.32.0", "fault", "--max-num-queued-reqs N"),
        ({"port": "1"}, "0.26.0", "fault", "a limit on concurrent requests in the gateway in front of it"),
    ],
)
def test_the_queue_limit_is_read_from_the_servers_flags(
    flags: Mapping[str, str] | None, version: str, expected: str, mend: str
) -> None:
    """Elsewhere it cannot be seen: unknown, not a fault. Older servers have no such flag."""
    finding = settings_checks.admission_limit(seen(flags=flags, version=version))

    assert (state(finding), finding.mend) == (expected, mend)


def test_a_health_check_that_is_green_while_no_token_comes() -> None:
    """200 on /health with a failing request is a fault; with a token it is ok."""
    assert state(settings_checks.readiness(seen(token=200))) == "ok"
    assert state(settings_checks.readiness(seen(token=0))) == "fault"
    down = replace(seen(token=0), health={"/health": 0, "/ping": 0})
    assert state(settings_checks.readiness(down)) == "unknown"


def test_versions_of_several_engines() -> None:
    """Two versions are a fault; one that nobody said is unknown."""
    new, old = seen(version="0.32.0"), replace(seen(version="0.26.0"), url="http://127.0.0.1:8001")

    assert state(settings_checks.one_version([new, new])) == "ok"
    assert state(settings_checks.one_version([new, old])) == "fault"
    assert state(settings_checks.one_version([seen(version="")])) == "unknown"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["/v/python", "/v/bin/vllm", "serve", "/m", "--port", "1", "--enforce-eager"],
         ({"port": "1", "enforce-eager": ""}, "/m")),
        (["vllm", "serve", "--max_num_seqs=8", "/m"], ({"max-num-seqs": "8"}, "/m")),
        (["python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "/m"], ({"model": "/m"}, "/m")),
        (["vllm", "bench", "serve"], None),
        (["nginx", "-g", "daemon off;"], None),
    ],
)  # fmt: skip
def test_a_servers_flags_from_its_command_line(words: list[str], expected: object) -> None:
    """Both spellings of a flag, with = or a space, and both ways to start a server."""
    assert parse(words) == expected


def test_quantiles_of_a_histogram_are_bucket_bounds() -> None:
    """Of 10 requests 6 within 1 s and 9 within 2 s, the median is at most 1 s, the P90 2 s, the P99 off the scale."""
    found = Histogram(((1.0, 6.0), (2.0, 9.0), (float("inf"), 10.0)), 12.0)

    assert [found.at_most(q) for q in (0.5, 0.9, 0.99)] == [1.0, 2.0, float("inf")]
    assert found.mean == 1.2
    assert Histogram(((1.0, 0.0),), 0.0).at_most(0.5) is None
