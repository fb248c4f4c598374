"""Damaged pages: whatever an engine sends, the answer is a page that Prometheus would take, or a reason."""

import random

import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporters.engine.labels import LabelCache
from exporters.engine.probe_error import ProbeError
from exporters.engine.render import EngineVersion, ProbeStats, render_probe, render_reading
from exporters.engine.translate import translate
from exporters.engine.vllm import ADAPTER
from slo.names.engine import PROBE_REASONS

ROUNDS = 80
SPICE = [
    b"\n", b"\r\n", b"\x00", b"\xff\xfe", b'"', b"\\", b"{", b"}", b"} ", b" ", b"NaN", b"-1", b"+Inf", b"1e999",
    b"# EOF\n", b",", b"=", b'le="', b"\xe2\x80\xa8", b"vllm:num_requests_running", b"\t", b"_created", b"1_0",
    b'engine="\xc3"', b"vllm:cache_config_info{", b'vllm:lora_requests_info{max_lora="2"} 1\n',
]  # fmt: skip


def damage(body, rng):
    """The page with one to eight random injuries."""
    page = bytearray(body)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(page) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            page[at:at] = rng.choice(SPICE)
        elif kind == 1:
            del page[at : at + rng.randint(1, 200)]
        elif kind == 2 and at < len(page):
            page[at] = rng.randrange(256)
        elif kind == 3:
            page[at:at] = page[at : at + rng.randint(1, 400)]
        else:
            lines = bytes(page).split(b"\n")
            rng.shuffle(lines) if rng.random() < 0.3 else lines.insert(
                rng.randrange(len(lines)), rng.choice(lines)
            )
            page = bytearray(b"\n".join(lines))
    return bytes(page)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_pages_yield_a_valid_page_or_a_reason(seed, capture):
    """No exception but ProbeError; what is published is UTF-8, parses, and holds each series once."""
    rng = random.Random(seed)
    bodies = [
        b"\n".join(capture(name).split(b"\n")[:: rng.choice((1, 1, 3))])
        for name in ("vllm-0.32.0-cpu-metrics_light", "vllm-0.32.0-cpu-lora_002", "vllm-0.32.0-cpu-dp2_001")
    ]
    cache = LabelCache(max_entries=500)
    outcomes = {"read": 0, "refused": 0}
    for _ in range(ROUNDS):
        body = damage(rng.choice(bodies), rng)
        try:
            reading = translate(body, ADAPTER, cache, "0.32.0", 5_000)
        except ProbeError as error:
            assert error.reason in PROBE_REASONS
            answer = render_probe(ProbeStats(0.1, len(body), 200), None, error)
            outcomes["refused"] += 1
        else:
            answer = render_reading(reading, EngineVersion()) + render_probe(
                ProbeStats(0.1, 1, 200), reading, None
            )
            outcomes["read"] += 1
        text = answer.decode()
        families = list(text_string_to_metric_families(text))
        series = [(s.name, frozenset(s.labels.items())) for family in families for s in family.samples]
        assert len(series) == len(set(series))
        assert all(name.startswith("llm_") for name, _ in series)
    assert min(outcomes.values()) > 10, outcomes


@pytest.mark.parametrize("seed", range(2))
def test_noise_is_never_an_engine(seed):
    """Random bytes, with and without an engine's name in them."""
    rng = random.Random(seed)
    for _ in range(300):
        noise = rng.randbytes(rng.randint(0, 300))
        for body in (noise, b"vllm:" + noise, b"\nvllm:num_requests_running{" + noise, b"ray_vllm_" + noise):
            with pytest.raises(ProbeError):
                translate(body, ADAPTER, LabelCache(), "unknown", 5_000)
