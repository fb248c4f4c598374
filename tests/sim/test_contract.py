"""/metrics against recordings of a real vLLM 0.32.0: what is there, how it is spelled, what is absent."""

from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sim.config import EngineConfig

FIXTURES = Path(__file__).parents[1] / "fixtures" / "sim"
# How the recorded server was started.
RECORDED = EngineConfig(
    model="tiny", max_num_seqs=8, max_model_len=4096, num_blocks=256, block_size=128, decode_step_seconds=0.01
)
# Cache fields that hold a size the simulation does not have.
UNCOMPARED = {"kv_cache_memory_bytes"}

Series = tuple[str, frozenset[tuple[str, str]]]


def recording(name: str) -> str:
    """One recorded exposition (help lines left out)."""
    return (FIXTURES / f"metrics_{name}.txt").read_text()


def types(text: str) -> list[str]:
    """`# TYPE` lines in order."""
    return [line for line in text.splitlines() if line.startswith("# TYPE")]


def series(text: str, handlers: set[str] | None = None) -> set[Series]:
    """Every series without its value; `http_*` ones only of the given handlers."""
    found: set[Series] = set()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {k: v for k, v in sample.labels.items() if k not in UNCOMPARED}
            if sample.name == "python_info":
                labels = dict.fromkeys(labels, "")
            if handlers is None or labels.get("handler") is None or labels["handler"] in handlers:
                found.add((sample.name, frozenset(labels.items())))
    return found


async def test_idle_server_has_exactly_the_recorded_series(start) -> None:
    """Before the first request: same families in the same order, same series, nothing more."""
    client = await start(RECORDED)
    _, text = await client.get("/metrics")
    assert types(text) == types(recording("idle"))
    assert series(text) == series(recording("idle"))


async def test_used_server_adds_the_recorded_http_series(start) -> None:
    """Per-handler series appear with a handler's first hit and status, and only then."""
    client = await start(RECORDED)
    await client.get("/v1/models")
    await client.get("/no/such/path")
    for probe in ("/health", "/ping", "/version", "/load", "/metrics"):
        await client.get(probe)
    for path, body in (
        ("/v1/completions", {"prompt": "a b"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a b"}]}),
    ):
        for max_tokens in (2, -1):
            payload = {**body, "max_tokens": max_tokens}
            async with client.session.post(client.server.url() + path, json=payload) as response:
                await response.read()
    _, text = await client.get("/metrics")
    handlers = {"/v1/models", "none", "/v1/completions", "/v1/chat/completions"}
    assert series(text) == series(recording("light"), handlers)


async def test_rejecting_server_adds_the_recorded_5xx_series(start) -> None:
    """A full queue answers 503 on both routes; with --kv-cache-metrics residency families exist."""
    client = await start(replace(RECORDED, kv_cache_metrics=True))
    for path, body in (
        ("/v1/completions", {"prompt": "a b"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a b"}]}),
    ):
        for max_tokens, queued in ((2, None), (-1, None), (2, 0)):
            limited = replace(client.server.base.engine, max_num_queued_reqs=queued)
            client.server.api.engine.reconfigure(limited)
            payload = {**body, "max_tokens": max_tokens}
            async with client.session.post(client.server.url() + path, json=payload) as response:
                await response.read()
    _, text = await client.get("/metrics")
    assert series(text) == series(recording("admission"))
    assert types(text) == types(recording("admission"))


async def test_sleeping_server_adds_the_recorded_sleep_families(start) -> None:
    """Sleep families exist from the first sleep on, last in the page, and the states are one-hot."""
    client = await start(replace(RECORDED, num_blocks=64, kv_cache_metrics=True))
    await client.server.switch("asleep", {})
    _, text = await client.get("/metrics")
    # `http_*_created` lines need a hit handler; no request was made here.
    recorded = [
        line for line in types(recording("sleeping")) if "http_" not in line or "_created" not in line
    ]
    ours = [line for line in types(text) if "http_" not in line or "_created" not in line]
    assert ours == recorded
    assert series(text, set()) == series(recording("sleeping"), set())
    for line in recording("sleeping").splitlines():
        if line.startswith("vllm:engine_sleep_state"):
            assert line in text


@pytest.mark.parametrize("name", ["idle", "light", "admission", "sleeping"])
def test_recordings_are_whole(name: str) -> None:
    """The fixtures hold what is compared: over 300 vLLM series each."""
    assert sum(one[0].startswith("vllm:") for one in series(recording(name))) > 300


async def test_metrics_ignores_accept_and_metrics_slash_negotiates(start) -> None:
    """As recorded: text with colons at /metrics, OpenMetrics with underscores at /metrics/."""
    client = await start(RECORDED)
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    async with client.session.get(client.server.url() + "/metrics", headers=accept) as response:
        assert response.headers["Content-Type"] == "text/plain; version=1.0.0; charset=utf-8"
        assert "vllm:num_requests_running{" in await response.text()
    async with client.session.get(client.server.url() + "/metrics/", headers=accept) as response:
        assert response.headers["Content-Type"].startswith("application/openmetrics-text")
        text = await response.text()
    assert "vllm_num_requests_running{" in text
    assert text.endswith("# EOF\n")


async def test_token_bounds_follow_max_model_len(start) -> None:
    """1-2-5 up to 50 for a context of 64 tokens."""
    client = await start(replace(RECORDED, max_model_len=64))
    samples = await client.metrics()
    bounds = [k.split("/")[1] for k in samples if k.startswith("request_prompt_tokens_bucket")]
    assert bounds == ["1.0", "2.0", "5.0", "10.0", "20.0", "50.0", "+Inf"]
