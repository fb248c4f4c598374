"""Requests made from a plan: bodies, labels, shares, and that no seed is ever sent."""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from loadtests.plan import LoadPlan, open_loop, parse_plan
from loadtests.workload import Due, Prepared, Workload


def _plan(**changes: Any) -> LoadPlan:
    base = {"base_url": "http://127.0.0.1:1", "model": "m", "arrival": open_loop(1, 1)}
    return parse_plan({**base, **changes})


def _bodies(plan: LoadPlan, count: int) -> list[tuple[Prepared, dict[str, Any]]]:
    work = Workload(plan)
    made = [work.next() for _ in range(count)]
    return [(request, json.loads(request.body)) for request in made]


def test_chat_body_streams_with_usage_and_no_seed() -> None:
    """Usage is asked for in the stream, and the engine is never given a seed."""
    (request, body), *_ = _bodies(_plan(output_tokens=9), 1)

    assert (request.endpoint, request.path, request.stream) == ("chat", "/v1/chat/completions", True)
    assert body["stream_options"] == {"include_usage": True}
    assert 9 == body["max_tokens"] == request.asked_output_tokens
    assert "seed" not in body


def test_prompt_has_about_the_wanted_words() -> None:
    """A word is counted as a token; the salt as three."""
    for words in (1, 3, 4, 50, 40_000):
        ((_, body),) = _bodies(_plan(prompt_tokens=words), 1)
        got = len(body["messages"][0]["content"].split())
        assert got == max(words - 2, 1)


def test_shared_prefix_share_and_unique_rest() -> None:
    """70 of 100 tokens are the same in all prompts of the one group (a tag of three and 67 words), the rest differs
    from its first word."""
    pairs = _bodies(_plan(prompt_tokens=100, prefix_share=0.7, mix={"completions": 1}), 50)
    prompts = [body["prompt"].split() for _, body in pairs]

    assert len({tuple(prompt[:68]) for prompt in prompts}) == 1
    assert len({prompt[68] for prompt in prompts}) == 50


def test_prefix_groups() -> None:
    """With three groups there are three beginnings."""
    pairs = _bodies(_plan(prompt_tokens=20, prefix_share=0.5, prefix_groups=3), 100)

    assert len({body["messages"][0]["content"] for _, body in pairs}) == 3


def test_lanes_tenants_and_priorities() -> None:
    """Labels come in their shares; priority and user go to the server only where the plan has them."""
    lanes = [{"name": "urgent", "share": 1, "priority": 0}, {"name": "batch", "share": 3}]
    pairs = _bodies(_plan(lanes=lanes, tenants=[{"name": "t", "share": 1}]), 400)
    seen = Counter(request.lane for request, _ in pairs)

    assert 60 < seen["urgent"] < 140
    assert all(("priority" in body) == (request.lane == "urgent") for request, body in pairs)
    assert {"t"} == {request.tenant for request, _ in pairs} == {body["user"] for _, body in pairs}


def test_abort_share() -> None:
    """A quarter of the requests hang up, after one to eight chunks as the default says."""
    limits = [request.abort_after_chunks for request, _ in _bodies(_plan(abort_share=0.25), 400)]
    chosen = [limit for limit in limits if limit is not None]

    assert 60 < len(chosen) < 140
    assert {1, 8} <= set(chosen) <= set(range(1, 9))


def test_mix_paths_and_embeddings() -> None:
    """Endpoints come by weight with their own paths and bodies; embeddings are not streamed."""
    plan = _plan(mix={"embeddings": 1, "rag": 1}, paths={"rag": "/ask"}, extra_body={"top_p": 0.5})
    pairs = _bodies(plan, 40)
    by_path = {request.path: (request, body) for request, body in pairs}

    assert {"/v1/embeddings", "/ask"} == set(by_path)
    request, body = by_path["/v1/embeddings"]
    assert (request.stream, request.asked_output_tokens) == (False, None)
    assert {"model", "input", "top_p"} == set(body)
    assert "question" in by_path["/ask"][1]


def test_tools_reasoning_and_ignore_eos() -> None:
    """Options of the chat go in where asked for."""
    plan = _plan(tools_share=1, tool_choice="required", reasoning="off", ignore_eos=True)
    ((_, body),) = _bodies(plan, 1)

    assert body["tool_choice"] == "required"
    assert body["tools"][0]["function"]["name"] == "look_up"
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert body["ignore_eos"] is True


def test_same_seed_same_requests_and_workers_differ() -> None:
    """Runs are comparable request by request; two workers never send the same prompts."""
    plan = _plan(random_seed=5, prompt_tokens="uniform:5:50")

    assert Workload(plan).next().body == Workload(plan).next().body
    assert Workload(plan, 0).next().body != Workload(plan, 1).next().body


def _run_of(nonce: str, count: int = 20, **changes: Any) -> list[Prepared]:
    work = Workload(_plan(run_nonce=nonce, mix={"completions": 1}, **changes))
    return [work.next() for _ in range(count)]


def _prompts(requests: list[Prepared]) -> list[str]:
    return [json.loads(request.body)["prompt"] for request in requests]


def test_a_repeat_with_the_same_seed_finds_no_prefix_cached() -> None:
    """No prompt, shared beginning or trace id of one run is that of another; lengths, labels and hang-ups all are."""
    shares: dict[str, Any] = {
        "prompt_tokens": "uniform:20:90",
        "output_tokens": "uniform:1:90",
        "prefix_share": 0.5,
        "prefix_groups": 3,
        "lanes": [{"name": "urgent", "share": 1}, {"name": "batch", "share": 1}],
        "tenants": [{"name": "a", "share": 1}, {"name": "b", "share": 1}],
        "abort_share": 0.5,
    }
    one, again, other = (_run_of(nonce, **shares) for nonce in ("a", "a", "b"))

    assert one == again
    assert not {text.split()[0] for text in _prompts(one)} & {text.split()[0] for text in _prompts(other)}
    assert not {request.trace_id for request in one} & {request.trace_id for request in other}
    same = [
        [
            (r.asked_prompt_tokens, r.asked_output_tokens, r.lane, r.tenant, r.abort_after_chunks)
            for r in requests
        ]
        for requests in (one, other)
    ]
    assert same[0] == same[1]


def test_workers_of_a_run_share_its_prefixes_and_runs_draw_the_same_groups() -> None:
    """Three groups: three beginnings in both workers' prompts; which one a request has is the seed's choice."""
    plan = _plan(prompt_tokens=40, prefix_share=0.5, prefix_groups=3, mix={"completions": 1}, run_nonce="a")
    works = [
        Workload(plan, 0),
        Workload(plan, 1),
        Workload(plan.model_copy(update={"run_nonce": "b"}), 0),
    ]
    first, second, repeat = (
        [json.loads(work.next().body)["prompt"].split()[0] for _ in range(60)] for work in works
    )

    assert set(first) == set(second)
    assert len(set(first)) == 3
    assert len(set(zip(first, repeat, strict=True))) == 3


def test_a_trace_played_again_finds_no_block_cached() -> None:
    """The same hash ids stand for other text in another run, block by block."""
    due = Due(0.0, 1024, 7, (1, 2))
    texts = [
        json.loads(Workload(_plan(run_nonce=nonce, mix={"completions": 1})).next(due).body)["prompt"].split()
        for nonce in ("a", "a", "b")
    ]

    assert texts[0] == texts[1]
    assert texts[0][0] != texts[2][0]
    assert texts[0][510] != texts[2][510]


def test_ten_thousand_groups_are_made_in_no_time() -> None:
    """A group costs a few numbers, not a text of its own."""
    begun = time.process_time()
    Workload(_plan(prefix_groups=10_000))

    assert time.process_time() - begun < 2


def test_a_trace_fixes_lengths_and_blocks_share_prefixes() -> None:
    """Lengths come from the trace; prompts of the same first block begin alike, of others do not."""
    work = Workload(_plan(mix={"completions": 1}))
    same_a = work.next(Due(0.0, 600, 7, (1, 2)))
    same_b = work.next(Due(0.0, 600, 7, (1, 3)))
    other = work.next(Due(0.0, 600, 7, (4, 2)))
    a, b, c = (json.loads(request.body)["prompt"].split() for request in (same_a, same_b, other))

    assert (same_a.asked_prompt_tokens, same_a.asked_output_tokens) == (600, 7)
    assert [len(a), len(b), len(c)] == [596, 596, 596]  # a tag at each block's start counts as three
    assert a[:510] == b[:510]
    assert a[510] != b[510]
    assert a[0] != c[0]


def test_backoff_grows_to_the_cap_with_jitter() -> None:
    """0.1 s doubling, each within ±25 %; never over the cap of 5 s, and not all of the capped ones alike."""
    work = Workload(_plan())
    for attempt, low, high in ((0, 0.075, 0.125), (1, 0.15, 0.25), (3, 0.6, 1.0), (10, 3.75, 5.0)):
        waits = [work.backoff_s(attempt) for _ in range(50)]
        assert low <= min(waits) < max(waits) <= high


def test_a_retry_leaves_the_next_requests_as_they_were() -> None:
    """A build that refuses once gets the same requests as one that does not."""
    plan = _plan(prompt_tokens="uniform:5:500", run_nonce="a")
    calm, refused = Workload(plan), Workload(plan)
    assert calm.next() == refused.next()
    refused.backoff_s(0)

    assert [calm.next() for _ in range(5)] == [refused.next() for _ in range(5)]


def test_questions_come_in_order(tmp_path: Path) -> None:
    """A prompts file is gone through in order, around its end."""
    path = tmp_path / "q.jsonl"
    path.write_text(
        '{"prompt": "1+1?", "answer": "2"}\n{"prompt": "2+2?", "answer": "4"}\n', encoding="utf-8"
    )
    pairs = _bodies(_plan(prompts_file=str(path)), 3)

    assert [body["messages"][0]["content"] for _, body in pairs] == ["1+1?", "2+2?", "1+1?"]
    assert pairs[0][0].asked_prompt_tokens is None


def test_questions_are_cut_where_asked(tmp_path: Path) -> None:
    """Context truncation: of six words the last three are sent, and the record says that three were asked for."""
    path = tmp_path / "q.jsonl"
    path.write_text('{"prompt": "Paris is the capital.\\nWhat is?", "answer": "Paris"}\n', encoding="utf-8")
    whole, cut = (
        _bodies(_plan(prompts_file=str(path), prompt_tokens=3, truncate_prompts=asked), 1)[0]
        for asked in (False, True)
    )

    assert whole[1]["messages"][0]["content"] == "Paris is the capital.\nWhat is?"
    assert cut[1]["messages"][0]["content"] == "capital.\nWhat is?"
    assert (whole[0].asked_prompt_tokens, cut[0].asked_prompt_tokens) == (None, 3)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_sampled_flag(share: float) -> None:
    """The trace flag says sampled for the share that the plan wants traced."""
    assert {bool(share)} == {request.sampled for request, _ in _bodies(_plan(trace_sampled_share=share), 5)}
