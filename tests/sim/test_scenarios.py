"""Each named scenario through HTTP: what a scraper and a client see of it, and the way back."""

import asyncio
import json
from dataclasses import replace

import aiohttp
import pytest

from sim.config import EngineConfig, LoadConfig

FAST = EngineConfig(model="tiny", decode_step_seconds=0.01, decode_sequence_seconds=0.0)
LOAD = LoadConfig(requests_per_second=15)


async def test_scenarios_that_move_load_need_load(start) -> None:
    """Without built-in clients a spike would do nothing, so it is refused."""
    client = await start()
    with pytest.raises(ValueError, match="--self-load"):
        await client.server.switch("traffic_spike", {})


async def test_healthy_load_is_answered_without_waiting(start) -> None:
    """Built-in clients are real ones: http, finishes and outcomes agree; hits above 0.61; no queue."""
    client = await start(replace(FAST, decode_step_seconds=0.02), LoadConfig(requests_per_second=15))
    # The first request of each of the eight prefixes (four, as text and as chat) cannot hit.
    cold = await client.until(lambda s: s["request_success_total/length"] >= 20)
    samples = await client.until(lambda s: s["request_success_total/length"] >= 40)
    hits, queries = (samples[n] - cold[n] for n in ("prefix_cache_hits_total", "prefix_cache_queries_total"))
    assert hits / queries > 0.61
    assert samples["num_requests_waiting"] == 0
    assert samples["num_preemptions_total"] == 0
    finished = samples["request_success_total/length"] + samples["request_success_total/stop"]
    answered = sum(v for k, v in samples.items() if k.startswith("http_requests_total"))
    assert abs(finished - answered) <= 3  # answers on their way between the two counters
    assert set(client.server.load.outcomes) == {"ok"}


async def test_traffic_spike_makes_a_queue_that_goes_away(start) -> None:
    """Ten times the rate, twice what two seats can answer: requests wait; back to healthy, none."""
    engine = replace(FAST, max_num_seqs=2, decode_step_seconds=0.02)
    client = await start(engine, LoadConfig(requests_per_second=2, max_in_flight=16))
    await client.server.switch("traffic_spike", {"factor": 10})
    await client.until(lambda s: s["num_requests_waiting"] > 8)
    await client.server.switch("healthy", {})
    await client.until(lambda s: s["num_requests_waiting"] == 0)


async def test_slow_decode_stretches_the_gaps_only(start) -> None:
    """Ten times 10 ms: every gap of a running stream becomes 0.1 s, the count of tokens is the same."""
    client = await start()
    await client.server.switch("slow_decode", {"factor": 10})
    await client.complete(max_tokens=4)
    samples = await client.metrics()
    assert samples["inter_token_latency_seconds_count"] == 3
    assert samples["inter_token_latency_seconds_bucket/0.075"] == 0
    assert samples["request_time_per_output_token_seconds_sum"] >= 0.1


async def test_slow_prefill_delays_the_first_token_only(start) -> None:
    """30 prompt tokens at 2 a step of 10 ms: prefill at least 0.15 s; gaps stay one step."""
    client = await start()
    await client.server.switch("slow_prefill", {"chunk_tokens": 2})
    await client.complete(prompt=" ".join(str(n) for n in range(30)), max_tokens=2)
    samples = await client.metrics()
    assert samples["request_prefill_time_seconds_sum"] >= 0.15
    assert samples["inter_token_latency_seconds_sum"] < samples["request_prefill_time_seconds_sum"] / 3
    assert samples["iteration_tokens_total_count"] == 2


async def test_kv_thrash_preempts_and_recovers(start) -> None:
    """Little KV space under load: usage near 1, preemptions, a queue; all answered in the end."""
    client = await start(replace(FAST, decode_step_seconds=0.03), LOAD)
    await client.server.switch("kv_thrash", {"usable_blocks": 40, "chunk_tokens": 16})
    samples = await client.until(lambda s: s["num_preemptions_total"] >= 3 and s["num_requests_waiting"] > 3)
    assert samples["kv_cache_usage_perc"] > 0.9
    await client.server.switch("healthy", {})
    await client.until(
        lambda s: (
            s["num_requests_waiting"] == 0
            and s["kv_cache_usage_perc"] < 0.5
            and s["request_num_preemptions_sum"] >= 3
        )
    )


async def test_cache_cold_finds_no_prefix(start) -> None:
    """The same 20-token prompt: 16 cached when healthy, none when cold; lookups still counted."""
    client = await start()
    prompt = " ".join(str(n) for n in range(20))
    await client.complete(prompt=prompt)
    await client.complete(prompt=prompt)
    assert (await client.metrics())["prefix_cache_hits_total"] == 16
    await client.server.switch("cache_cold", {})
    await client.complete(prompt=prompt)
    samples = await client.metrics()
    assert samples["prefix_cache_hits_total"] == 16
    assert samples["prefix_cache_queries_total"] == 60
    assert samples["prompt_tokens_by_source_total/local_cache_hit"] == 16
    assert samples["prompt_tokens_by_source_total/local_compute"] == 44


async def test_errors_before_the_engine_are_500s_it_never_sees(start) -> None:
    """With no failure in the engine: 500, an http 5xx, no finish."""
    client = await start()
    await client.server.switch("errors", {"in_engine_share": 0})
    status, body = await client.complete(stream=True)
    assert (status, json.loads(body)["error"]["code"]) == (500, 500)
    samples = await client.metrics()
    assert samples["http_requests_total//v1/completions/POST/5xx"] == 1
    assert samples["request_success_total/error"] == 0


async def test_errors_in_the_engine_end_streams_inside_a_200(start) -> None:
    """A stream gets two tokens, then an error event; a whole answer becomes a 500; both count as error."""
    client = await start()
    await client.server.switch("errors", {"in_engine_share": 1})
    status, body = await client.complete(stream=True, max_tokens=8)
    parts = [part.removeprefix("data: ") for part in body.strip().split("\n\n")]
    assert (status, parts[-1], len(parts)) == (200, "[DONE]", 4)
    assert json.loads(parts[-2])["error"]["code"] == 500
    assert (await client.complete(max_tokens=8))[0] == 500
    samples = await client.metrics()
    assert samples["request_success_total/error"] == 2
    assert samples["http_requests_total//v1/completions/POST/2xx"] == 1
    assert samples["http_requests_total//v1/completions/POST/5xx"] == 1


async def test_admission_reject_refuses_in_both_ways(start) -> None:
    """Built-in clients in bursts meet plain 503s and 503s inside streams; some are answered."""
    client = await start(FAST, LOAD)
    await client.server.switch("admission_reject", {})
    outcomes = client.server.load.outcomes
    samples = await client.until(
        lambda s: min(outcomes["http_503"], outcomes["in_stream_error"], outcomes["ok"]) >= 2
    )
    assert samples["admission_rejections_total/max_num_queued_reqs"] >= 4


async def test_hang_freezes_gauges_and_requests_while_probes_answer(start) -> None:
    """A running request gets no further token, /health is 200, the gauge stays at 1; then it ends."""
    client = await start()
    asked = asyncio.create_task(client.complete(max_tokens=60))
    await client.until(lambda s: s["num_requests_running"] == 1)
    await client.server.switch("hang", {})
    before = await client.metrics()
    newcomer = asyncio.create_task(client.complete())
    await asyncio.sleep(0.3)
    after = await client.metrics()
    assert await client.get("/health") == (200, "")
    assert not asked.done()
    assert not newcomer.done()
    for name in ("num_requests_running", "num_requests_waiting", "generation_tokens_total"):
        assert after[name] == before[name]
    await client.server.switch("healthy", {})
    assert [(await task)[0] for task in (asked, newcomer)] == [200, 200]


async def test_hang_with_work_waits_for_a_request_and_shows_it_running(start) -> None:
    """Switched while idle, the engine still begins the next request, freezes in it, and its gauge says 1."""
    client = await start()
    await client.server.switch("hang", {"with_work": 1})
    asked = asyncio.create_task(client.complete(max_tokens=60))
    before = await client.until(lambda s: s["num_requests_running"] == 1 and s["generation_tokens_total"] > 0)
    await asyncio.sleep(0.3)
    after = await client.metrics()
    assert not asked.done()
    for name in ("num_requests_running", "generation_tokens_total"):
        assert after[name] == before[name]
    await client.server.switch("healthy", {})
    assert (await asked)[0] == 200


async def test_asleep_aborts_what_runs_and_lets_newcomers_wait(start) -> None:
    """The running request ends as abort, counted; a new one waits until the engine wakes."""
    client = await start()
    asked = asyncio.create_task(client.complete(max_tokens=2000))
    await client.until(lambda s: s["num_requests_running"] == 1)
    await client.server.switch("asleep", {})
    status, body = await asked
    assert (status, json.loads(body)["choices"][0]["finish_reason"]) == (200, "abort")
    newcomer = asyncio.create_task(client.complete())
    await asyncio.sleep(0.2)
    samples = await client.metrics()
    assert samples["request_success_total/abort"] == 1
    assert samples["engine_sleep_state/awake"] == 0
    assert samples["engine_sleep_state/weights_offloaded"] == 1
    assert (await client.get("/health"))[0] == 200
    assert not newcomer.done()
    await client.server.switch("healthy", {})
    assert (await newcomer)[0] == 200
    samples = await client.metrics()
    assert samples["engine_sleep_state/awake"] == 1
    assert samples["sleep_mode_operation_duration_seconds_count/wake"] == 1


async def test_restart_refuses_then_counts_from_zero(start) -> None:
    """A kept connection is cut, the port refuses, then counters are 0 and the start time is later."""
    client = await start()
    await client.complete()
    before = await client.metrics()
    await client.server.switch("restart", {"down_seconds": 0.4})
    await asyncio.sleep(0.2)
    with pytest.raises(aiohttp.ClientConnectorError):
        await client.get("/health")
    while client.server.scenario.name == "restart":
        await asyncio.sleep(0.05)
    after = await client.metrics()
    assert before["request_success_total/length"] == 1
    assert after["request_success_total/length"] == 0
    assert after["process_start_time_seconds"] > before["process_start_time_seconds"]
    assert after["process_cpu_seconds_total"] < before["process_cpu_seconds_total"] + 1
    assert (await client.complete())[0] == 200


async def test_down_closes_the_port_and_keeps_the_counters(start) -> None:
    """Refused while down, also on a kept connection; afterwards the counters go on."""
    client = await start()
    await client.complete()
    await client.server.switch("down", {})
    with pytest.raises(aiohttp.ClientError):
        await client.complete()
    await client.server.switch("healthy", {})
    await client.complete()
    assert (await client.metrics())["request_success_total/length"] == 2


async def test_silent_accepts_and_answers_when_it_is_over(start) -> None:
    """Nothing is answered meanwhile, probes neither; who still waits at the end is."""
    client = await start()
    await client.server.switch("silent", {})
    patient = asyncio.create_task(client.complete())
    for path in ("/metrics", "/health"):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await client.get(path)
    assert not patient.done()
    await client.server.switch("healthy", {})
    assert (await patient)[0] == 200
    assert (await client.metrics())["request_success_total/length"] == 1


async def test_a_switch_in_the_middle_of_a_restart_ends_it(start) -> None:
    """Going back to healthy while the port is closed opens it at once."""
    client = await start()
    await client.server.switch("restart", {"down_seconds": 600})
    await asyncio.sleep(0.2)
    await client.server.switch("healthy", {})
    assert (await client.complete())[0] == 200


async def test_no_metrics_leaves_only_the_interpreter(start) -> None:
    """200, and every family is python_*."""
    client = await start()
    await client.server.switch("no_metrics", {})
    samples = await client.metrics()
    assert samples
    assert all(name.startswith("python_") for name in samples)
    await client.server.switch("healthy", {})
    assert "num_requests_running" in await client.metrics()


async def test_counter_sawtooth_flips_between_two_workers(start) -> None:
    """Four scrapes after one request: 0, 1, 0, 1 finishes in one order or the other."""
    client = await start()
    await client.complete()
    await client.server.switch("counter_sawtooth", {})
    seen = [(await client.metrics())["request_success_total/length"] for _ in range(4)]
    assert seen in ([0, 1, 0, 1], [1, 0, 1, 0])


async def test_client_aborts_are_begun_but_never_finished(start) -> None:
    """All built-in clients leave: first tokens counted, nothing finished, no error anywhere."""
    client = await start(replace(FAST, decode_step_seconds=0.03), LOAD)
    await client.server.switch("client_aborts", {"share": 1})
    at_switch = await client.metrics()
    samples = await client.until(lambda s: client.server.load.outcomes["left"] >= 10)
    begun = samples["time_to_first_token_seconds_count"] - at_switch["time_to_first_token_seconds_count"]
    assert begun >= 10
    assert samples["e2e_request_latency_seconds_count"] <= begun / 2
    assert samples["request_success_total/abort"] == 0


async def test_clients_that_time_out_are_counted_by_the_load(start) -> None:
    """On a hung engine the built-in clients give up after their time limit."""
    client = await start(FAST, replace(LOAD, timeout_seconds=0.2))
    await client.server.switch("hang", {})
    await client.until(lambda s: client.server.load.outcomes["timed_out"] >= 2)
