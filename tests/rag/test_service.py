"""The whole service on a tiny model: answers, spans, metrics, faults, and what never gets into a span."""

import asyncio
import json

import numpy as np
import pytest
from opentelemetry.trace import StatusCode

from rag import library
from rag.minilm import Encoded

STAGES = ["receive", "embedding", "retrieval", "rerank", "assemble", "generate", "respond"]
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


async def test_an_answer_cites_its_passages_and_states_the_engines_usage(start, engine):
    """Numbers in the answer are those of the prompt."""
    service = await start()
    status, body = await service.ask()
    assert status == 200
    assert body["answer"] == "It works."
    assert [one["number"] for one in body["citations"]] == [1, 2]
    assert body["usage"] == {
        "prompt_tokens": 300, "completion_tokens": 3, "total_tokens": 303,
        "prompt_tokens_details": {"cached_tokens": 128},
    }  # fmt: skip
    prompt = engine.seen[0][0]["messages"][1]["content"]
    for one in body["citations"]:
        assert f"[{one['number']}] {one['title']}:" in prompt


async def test_one_request_is_one_trace_of_seven_stages_under_the_caller(start, engine, spans):
    """The engine is told to continue it under the generate span; every stage hangs on the request."""
    service = await start()
    await service.ask(headers={"traceparent": f"00-{TRACE}-{SPAN}-01"})
    found = {(one.attributes or {}).get("rag.stage", "request"): one for one in spans()}
    root = found.pop("request")
    assert list(found) == STAGES
    assert f"{root.parent.span_id:016x}" == SPAN
    assert {f"{one.context.trace_id:032x}" for one in (root, *found.values())} == {TRACE}
    assert {one.parent.span_id for one in found.values()} == {root.context.span_id}
    generate = found["generate"]
    assert engine.seen[0][1]["traceparent"] == f"00-{TRACE}-{generate.context.span_id:016x}-01"
    assert generate.name == "chat tiny"
    assert generate.attributes["gen_ai.usage.cache_read.input_tokens"] == 128
    assert generate.attributes["inferwatch.stream.chunks"] == 2
    assert generate.attributes["rag.pool.wait_seconds"] >= 0
    assert found["retrieval"].attributes["rag.query_class"] == "short"
    assert found["assemble"].attributes["rag.context.truncated"] is False
    assert {one.attributes["rag.embedding.version"] for one in (root, generate, found["embedding"])} == {"v1"}


async def test_no_text_of_question_passage_or_answer_is_on_any_span(start, engine, spans):
    """Whole or failed: names, attributes and events hold none of it, nor the text of an exception."""
    service = await start()
    await service.ask("my zebra secret")
    engine.events = [{"choices": [{"delta": {"content": "works."}}]}, {"error": {"message": "zebra"}}]
    await service.ask("another zebra secret")
    text = json.dumps([json.loads(one.to_json()) for one in spans()])
    assert len(spans()) == 16
    for word in ("zebra", "secret", "works.", "statement", "mat"):
        assert word not in text


async def test_a_stream_brings_text_then_finish_then_facts(start):
    """The order that OpenAI clients expect, and [DONE] at the end."""
    service = await start()
    question = {"question": "cat ?", "stream": True}
    async with service.client.post(f"{service.url}/v1/rag/answer", json=question) as answer:
        lines = [line[6:] for line in (await answer.text()).splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    events = [json.loads(line) for line in lines[:-1]]
    assert [e["choices"][0]["delta"].get("content") for e in events[:-2]] == ["It ", "works."]
    assert events[-2]["choices"][0]["finish_reason"] == "stop"
    assert events[-1]["usage"]["prompt_tokens"] == 300
    assert events[-1]["rag"]["cache"] == "miss"


async def test_the_second_time_is_answered_from_the_cache_without_a_search(start, spans):
    """Embedding, search and rerank are left out; the request says which level."""
    service = await start()
    await service.ask("cat ?")
    _, body = await service.ask("CAT  ?")
    assert body["cache"] == "l1"
    root = spans()[-1]
    assert root.attributes["rag.cache.level"] == "l1"
    assert [(one.attributes or {}).get("rag.stage") for one in spans()[-5:-1]] == [
        "receive", "assemble", "generate", "respond",
    ]  # fmt: skip


async def test_a_question_without_an_answer_is_said_to_have_none_and_remembered(start, engine):
    """Nothing is near enough: no engine is asked, the first time nor the second."""
    service = await start(retrieval={"top_k": 3, "keep": 2, "min_score": 1.0})
    first, second = await service.ask(), await service.ask()
    assert [body["cache"] for _, body in (first, second)] == ["miss", "negative"]
    assert "do not say" in first[1]["answer"]
    assert first[1]["usage"] is None
    assert engine.seen == []
    assert service.value("rag_cache_lookups_total", level="l1", result="negative") == 1
    assert service.value("rag_requests_total", outcome="ok") == 2


async def test_counts_of_the_engines_tokens_are_by_length_class(start):
    """A prompt of 300 tokens, 128 of them cached, is of the class 256-511."""
    service = await start()
    await service.ask()
    assert service.value("rag_generation_prompt_tokens_total", length_class="256-511") == 300
    assert service.value("rag_generation_cached_tokens_total", length_class="256-511") == 128
    assert service.value("rag_generation_client_seconds_count", context_class="256-511") == 1
    assert service.value("rag_generation_first_token_seconds_count") == 1
    assert service.value("rag_contexts_total") == 1
    assert service.value("rag_embedding_version_info", version="v1", dimension="32") == 1


async def test_a_context_over_its_budget_is_cut_and_counted(start, engine):
    """A budget of 32 tokens cannot hold two passages of 12 to 16 words and more pieces."""
    service = await start(
        context={"max_tokens": 32, "truncate": "tail"}, retrieval={"top_k": 4, "keep": 4, "min_score": -1}
    )
    _, body = await service.ask()
    context = body["context"]
    assert context["tokens_after"] == 32 < context["tokens_before"]
    assert sum(one["tokens"] for one in context["cut"]) == context["tokens_before"] - 32
    assert "cut from the tail" in engine.seen[0][0]["messages"][1]["content"]
    assert service.value("rag_contexts_truncated_total", where="tail") == 1
    assert service.value("rag_context_kept_tokens_sum") == 32


@pytest.mark.parametrize("stage", ["embedding", "retrieval", "rerank", "assemble", "generate"])
async def test_a_failing_stage_is_counted_and_its_span_alone_is_an_error(start, spans, stage):
    """503, named; the request's span fails with it, the other stages do not."""
    service = await start()
    async with service.client.post(f"{service.url}/faults", json={"stage": stage, "fail_ratio": 1}) as answer:
        assert answer.status == 200
    status, body = await service.ask()
    assert (status, body["error"]["type"]) == (503, "injected")
    failed = [
        (o.attributes or {}).get("rag.stage") for o in spans() if o.status.status_code is StatusCode.ERROR
    ]
    assert failed == [stage, None]
    assert service.value("rag_stage_errors_total", stage=stage) == 1
    assert service.value("rag_requests_total", outcome="error") == 1
    async with service.client.delete(f"{service.url}/faults"):
        pass
    assert (await service.ask())[0] == 200


async def test_a_starved_pool_makes_callers_wait_and_then_turns_them_away(start, engine):
    """One connection, 500 ms an answer, 30 ms of patience: of three at once two are turned away by name."""
    engine.pause = 0.1
    service = await start(pools={"engine": {"size": 4, "wait_seconds": 0.03}})
    async with service.client.post(f"{service.url}/faults", json={"stage": "generate", "pool_size": 1}):
        pass
    answers = await asyncio.gather(*(service.ask(f"cat {n} ?") for n in range(3)))
    assert sorted(status for status, _ in answers) == [200, 503, 503]
    assert {body["error"]["type"] for status, body in answers if status == 503} == {"pool_starved"}
    assert service.value("rag_pool_size", pool="engine") == 1
    assert service.value("rag_pool_wait_seconds_sum", pool="engine") >= 0.05


async def test_a_failure_in_the_middle_of_a_stream_is_told_in_the_stream(start, engine):
    """The status was sent already; the error event is OpenAI-shaped and there is no [DONE]."""
    engine.events = [{"choices": [{"delta": {"content": "a"}}]}, {"error": {"message": "x"}}]
    service = await start()
    question = {"question": "cat ?", "stream": True}
    async with service.client.post(f"{service.url}/v1/rag/answer", json=question) as answer:
        text = await answer.text()
    assert answer.status == 200
    assert '"type": "stream_error"' in text
    assert "[DONE]" not in text
    assert service.value("rag_requests_total", outcome="error") == 1


async def test_a_client_that_hangs_up_is_neither_error_nor_success(start, engine, spans):
    """The request is abandoned, and so is the stage it was in; no stage error is counted."""
    engine.pause = 0.05
    service = await start()
    question = {"question": "cat ?", "stream": True}
    async with service.client.post(f"{service.url}/v1/rag/answer", json=question) as answer:
        await answer.content.readline()
        answer.close()
    for _ in range(100):
        if service.value("rag_requests_total", outcome="abandoned"):
            break
        await asyncio.sleep(0.02)
    assert service.value("rag_requests_total", outcome="abandoned") == 1
    assert service.value("rag_stage_errors_total", stage="generate") == 0
    root = spans()[-1]
    assert root.attributes["inferwatch.abandoned"] is True
    assert root.status.status_code is StatusCode.UNSET


async def test_versions_are_compared_by_share_and_rolled_back_live(start, spans):
    """Everything goes to v1 until the shares say v2; the header asks for one by name."""
    versions = [
        {"version": "v1", "model_dir": None, "share": 1},
        {"version": "v2", "model_dir": None, "share": 0, "pooling": "cls"},
    ]
    from .conftest import TINY

    service = await start(embeddings=[{**one, "model_dir": TINY} for one in versions])
    assert (await service.ask())[1]["version"] == "v1"
    assert (await service.ask(headers={"X-Embedding-Version": "v2"}))[1]["version"] == "v2"
    async with service.client.post(f"{service.url}/versions", json={"v1": 0, "v2": 1}) as answer:
        assert await answer.json() == {"v1": 0, "v2": 1}
    assert (await service.ask("cat ?"))[1]["version"] == "v2"
    async with service.client.post(f"{service.url}/versions", json={"v2": 0}) as answer:
        assert answer.status == 400
    async with service.client.post(f"{service.url}/versions", json={"v3": 1}) as answer:
        assert "v3: no version" in (await answer.json())["error"]


@pytest.mark.parametrize(
    ("numbers", "reason"), [([0.0] * 32, "zero"), ([float("nan")] * 32, "nan"), ([1.0] * 12, "dimension")]
)
async def test_a_query_vector_of_no_use_never_reaches_the_index(start, monkeypatch, numbers, reason):
    """The model was swapped or broke: counted by reason, told to the caller, cached nowhere."""
    service = await start()

    async def encode(self, texts):
        return Encoded(np.array([numbers], np.float32), [np.zeros((0, 32), np.float32)])

    monkeypatch.setattr("rag.embedder.LocalEmbedder.encode", encode)
    for _ in range(2):
        status, body = await service.ask()
        assert (status, body["error"]["type"]) == (502, f"vector_{reason}")
    assert service.value("rag_vectors_rejected_total", reason=reason) == 2
    assert service.value("rag_stage_errors_total", stage="embedding") == 2


async def test_an_index_is_made_once_and_read_the_next_time(start, monkeypatch, tmp_path):
    """The second start embeds no passage; one file a version."""
    await start()
    assert len(list((tmp_path / "data").glob("index-*.npz"))) == 1

    async def never(*_):
        raise AssertionError("passages were embedded again")

    monkeypatch.setattr(library, "_embed", never)
    service = await start()
    assert (await service.ask())[0] == 200


async def test_a_broken_traceparent_is_served_and_counted_on_metrics(start):
    """The scrape shows it by reason, beside reasons that are 0."""
    service = await start()
    before = service.value("rag_broken_traceparents_total", reason="version")
    await service.ask(headers={"traceparent": f"ff-{TRACE}-{SPAN}-01"})
    async with service.client.get(f"{service.url}/metrics") as answer:
        text = await answer.text()
    assert f'rag_broken_traceparents_total{{reason="version"}} {before + 1}' in text
    assert 'rag_stage_errors_total{stage="embedding"} 0.0' in text


async def test_an_engine_that_miscounts_costs_no_answer(start, engine):
    """Cached tokens as a text were an error after the whole answer had come; now they are unknown."""
    service = await start()
    usage = {
        "prompt_tokens": 300,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": "many"},
    }
    engine.events = [*engine.events[:3], {"choices": [], "usage": usage}, "[DONE]"]
    status, body = await service.ask()
    assert (status, body["answer"]) == (200, "It works.")
    assert body["usage"] == {"prompt_tokens": 300, "completion_tokens": 3, "total_tokens": 303}
