"""The API as clients see it: streams, whole answers, errors, and that it says it is simulated."""

import asyncio
import json
import time

import aiohttp
import pytest

from sim.config import EngineConfig


def events(body: str) -> list[str]:
    """The data of each server-sent event; every event must be one `data:` line and a blank one."""
    assert body.endswith("\n\n")
    parts = body.removesuffix("\n\n").split("\n\n")
    assert all(part.startswith("data: ") and "\n" not in part for part in parts)
    return [part.removeprefix("data: ") for part in parts]


async def chat(client, **body: object) -> tuple[int, str]:
    """Status and body of a chat completion of one user message of two words."""
    payload = {
        "messages": [{"role": "user", "content": "hello there"}],
        "max_tokens": 3,
        "ignore_eos": True,
        **body,
    }
    async with client.session.post(client.server.url() + "/v1/chat/completions", json=payload) as response:
        return response.status, await response.text()


async def test_completion_stream_is_one_event_a_token_then_usage_then_done(start) -> None:
    """3 prompt words, 4 tokens: four text events, the last with a reason, then usage 3 + 4 = 7."""
    client = await start()
    status, body = await client.complete(stream=True, stream_options={"include_usage": True})
    *chunks, usage, done = events(body)
    assert (status, done) == (200, "[DONE]")
    parsed = [json.loads(chunk) for chunk in chunks]
    assert [p["choices"][0]["finish_reason"] for p in parsed] == [None, None, None, "length"]
    assert all(p["object"] == "text_completion" and p["choices"][0]["text"].strip() for p in parsed)
    assert len({p["id"] for p in parsed}) == 1
    last = json.loads(usage)
    assert last["choices"] == []
    assert last["usage"] == {"prompt_tokens": 3, "total_tokens": 7, "completion_tokens": 4}


async def test_stream_without_usage_option_has_no_usage(start) -> None:
    """Usage is sent only when asked for."""
    client = await start()
    _, body = await client.complete(stream=True)
    assert all("usage" not in json.loads(data) for data in events(body)[:-1])


async def test_chat_stream_begins_with_the_role(start) -> None:
    """A role event with empty content, then one event a token."""
    client = await start()
    status, body = await chat(client, stream=True)
    deltas = [json.loads(data)["choices"][0]["delta"] for data in events(body)[:-1]]
    assert status == 200
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert len(deltas) == 4
    assert all(delta["content"].strip() for delta in deltas[1:])


async def test_whole_answers_carry_usage_and_finish_reason(start) -> None:
    """A chat of 2 words and 2 template tokens: 4 prompt tokens, 3 made."""
    client = await start()
    status, body = await chat(client)
    answer = json.loads(body)
    assert (status, answer["object"]) == (200, "chat.completion")
    assert answer["choices"][0]["message"]["role"] == "assistant"
    assert len(answer["choices"][0]["message"]["content"].split()) == 3
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"] == {"prompt_tokens": 4, "total_tokens": 7, "completion_tokens": 3}


async def test_several_prompts_and_choices_are_told_apart(start) -> None:
    """Two prompts with n = 2 give choices 0 to 3; request_params_n counts once, finishes four times."""
    client = await start()
    _, body = await client.complete(prompt=["a b", "c"], n=2, temperature=1.0, max_tokens=2)
    answer = json.loads(body)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert answer["usage"] == {"prompt_tokens": 3, "total_tokens": 11, "completion_tokens": 8}
    samples = await client.metrics()
    assert samples["request_success_total/length"] == 4
    assert (samples["request_params_n_count"], samples["request_params_n_sum"]) == (1, 2)


@pytest.mark.parametrize(
    "body, status, param",
    [
        ({"temperature": -3.0}, 400, "temperature"),
        ({"n": 2, "temperature": 0}, 400, None),
        ({"n": 16_385}, 400, "n"),
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"prompt": ""}, 400, "prompt"),
        ({"prompt": "w " * 5000}, 400, "input_tokens"),
        ({"prompt": 5}, 400, "prompt"),
        ({"model": "other"}, 404, "model"),
    ],
)
async def test_bad_requests_name_what_is_wrong(start, body, status: int, param: str | None) -> None:
    """4xx with OpenAI's error object, and nothing reaches the engine."""
    client = await start()
    got, text = await client.complete(**body)
    error = json.loads(text)["error"]
    assert (got, error["code"]) == (status, status)
    if param is not None:
        assert error["param"].startswith(param)
    assert (await client.metrics())["time_to_first_token_seconds_count"] == 0


async def test_every_answer_says_that_it_is_simulated(start) -> None:
    """Header, /version, and the owner in /v1/models; probes answer 200 with no body."""
    client = await start()
    async with client.session.get(client.server.url() + "/version") as response:
        assert response.headers["X-Inferwatch-Simulated"] == "true"
        assert await response.json() == {"version": "0.32.0", "simulated": True}
    models = json.loads((await client.get("/v1/models"))[1])
    assert models["data"][0]["owned_by"] == "inferwatch-sim"
    assert EngineConfig().model == "sim-llama"
    assert await client.get("/health") == (200, "")
    assert await client.get("/ping") == (200, "")
    assert json.loads((await client.get("/load"))[1]) == {"server_load": 0}
    assert (await client.get("/nowhere"))[0] == 404


async def test_metrics_agree_with_what_the_client_measured(start) -> None:
    """First token, end and gaps of five streams: server sums within 10 % + 50 ms of the client's."""
    client = await start(EngineConfig(model="tiny", decode_step_seconds=0.06))
    first = whole = gaps = 0.0
    for number in range(5):
        payload = {"prompt": f"{number} b c", "max_tokens": 6, "ignore_eos": True, "stream": True}
        began = time.monotonic()
        async with client.session.post(client.server.url() + "/v1/completions", json=payload) as response:
            times = [time.monotonic() async for line in response.content if b'"text"' in line]
        first += times[0] - began
        gaps += times[-1] - times[0]
        whole += times[-1] - began
    samples = await client.metrics()
    for name, client_sum, count in (
        ("time_to_first_token_seconds", first, 5),
        ("e2e_request_latency_seconds", whole, 5),
        ("inter_token_latency_seconds", gaps, 25),
        ("request_decode_time_seconds", gaps, 5),
    ):
        assert samples[f"{name}_count"] == count
        assert samples[f"{name}_sum"] == pytest.approx(client_sum, rel=0.1, abs=0.05)
    parts = sum(samples[f"request_{part}_time_seconds_sum"] for part in ("queue", "prefill", "decode"))
    # The rest is the frontend's time, before the engine knew of the request.
    assert 0 <= samples["e2e_request_latency_seconds_sum"] - parts < 0.25
    assert samples["request_time_per_output_token_seconds_sum"] == pytest.approx(gaps / 5, rel=0.1, abs=0.01)


async def test_an_aborted_stream_leaves_only_its_first_token(start) -> None:
    """As recorded of ten aborts: first tokens counted, no finish of any kind, KV freed, http 2xx."""
    client = await start()
    payload = {"prompt": "a b c", "max_tokens": 2000, "ignore_eos": True, "stream": True}
    for _ in range(3):
        async with client.session.post(client.server.url() + "/v1/completions", json=payload) as response:
            await response.content.readany()
            await client.until(lambda s: s["num_requests_running"] == 1)
            response.close()
        samples = await client.until(lambda s: s["num_requests_running"] == 0)
    assert samples["time_to_first_token_seconds_count"] == 3
    assert samples["e2e_request_latency_seconds_count"] == 0
    assert sum(v for k, v in samples.items() if k.startswith("request_success_total")) == 0
    assert samples["kv_cache_usage_perc"] == 0
    assert samples["http_requests_total//v1/completions/POST/2xx"] == 3


async def test_a_burst_on_a_short_queue_is_refused_in_two_ways(start) -> None:
    """One seat, queue of 2: streams that were let in before it filled get the 503 inside a 200."""
    client = await start(EngineConfig(model="tiny", max_num_seqs=1, max_num_queued_reqs=2))
    answers = await asyncio.gather(*(client.complete(stream=True, max_tokens=8) for _ in range(12)))
    late = [await client.complete(stream=True) for _ in range(1)]
    refused_inside = [body for status, body in answers if status == 200 and '"error"' in body]
    assert len(refused_inside) >= 1
    for body in refused_inside:
        error, done = events(body)
        assert json.loads(error)["error"]["code"] == 503
        assert done == "[DONE]"
    samples = await client.metrics()
    refused = sum(status == 503 or '"error"' in body for status, body in [*answers, *late])
    assert samples["admission_rejections_total/max_num_queued_reqs"] == refused


async def test_a_full_queue_is_refused_before_the_stream_begins(start) -> None:
    """While the seat and the queue are taken, a stream gets a plain 503."""
    client = await start(EngineConfig(model="tiny", max_num_seqs=1, max_num_queued_reqs=1))
    first = asyncio.create_task(client.complete(max_tokens=40))
    await client.until(lambda s: s["num_requests_running"] == 1)
    second = asyncio.create_task(client.complete())
    await client.until(lambda s: s["num_requests_waiting"] == 1)
    status, body = await client.complete(stream=True)
    assert (status, json.loads(body)["error"]["code"]) == (503, 503)
    assert [(await task)[0] for task in (first, second)] == [200, 200]


async def test_a_client_that_waits_shares_the_queue_fairly(start) -> None:
    """With one seat the second request's queue time is about the first one's whole time."""
    client = await start(EngineConfig(model="tiny", max_num_seqs=1, decode_step_seconds=0.03))
    await asyncio.gather(client.complete(max_tokens=10), client.complete(max_tokens=10))
    samples = await client.metrics()
    inference = samples["request_inference_time_seconds_sum"] / 2
    assert samples["request_queue_time_seconds_sum"] == pytest.approx(inference, rel=0.3)


async def test_a_session_with_no_server_fails_to_connect(start) -> None:
    """After the server's end its port is closed."""
    client = await start()
    await client.server.switch("down", {})
    with pytest.raises(aiohttp.ClientConnectorError):
        await client.get("/health")
