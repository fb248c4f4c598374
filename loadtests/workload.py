"""A plan and a random stream -> the next request to send: path, JSON body, labels, and when to hang up."""

import itertools
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from loadtests.plan import PATHS, Endpoint, LoadPlan
from loadtests.prompts import PromptMaker
from loadtests.quality import last_words, read_questions

_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": "Look a word up in the dictionary.",
            "parameters": {
                "type": "object",
                "properties": {"word": {"type": "string"}},
                "required": ["word"],
            },
        },
    }
]
_BLOCK_WORDS = 512  # a Mooncake hash id stands for 512 tokens


class Due(NamedTuple):
    """A request that the arrival process wants: seconds from the start, and lengths where a trace gives them."""

    at_s: float
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """One request, ready to send. `abort_after_chunks` None: listen to the end."""

    seq: int
    endpoint: str
    path: str
    body: bytes
    stream: bool
    tenant: str | None
    lane: str | None
    trace_id: str
    sampled: bool
    asked_prompt_tokens: int | None
    asked_output_tokens: int | None
    abort_after_chunks: int | None


class Workload:
    """The requests of one worker, reproducible from the plan's random seed, its run nonce and the worker's index."""

    def __init__(self, plan: LoadPlan, worker: int = 0) -> None:
        self._plan = plan
        self._rng = random.Random(f"{plan.random_seed}/{worker}/work")
        # Of its own: what one build refuses must not change the requests that come after.
        self._backoff_rng = random.Random(f"{plan.random_seed}/{worker}/backoff")
        run = f"{plan.random_seed}/{plan.run_nonce}"
        self._prompts = PromptMaker(run, worker, plan.prefix_groups)
        self._trace_ids = random.Random(f"{run}/{worker}/traces")
        self._seq = itertools.count()
        self._endpoints = _Chooser(list(plan.mix), list(plan.mix.values()))
        self._lanes = _Chooser(list(plan.lanes), [lane.share for lane in plan.lanes])
        self._tenants = _Chooser(list(plan.tenants), [tenant.share for tenant in plan.tenants])
        self._fixed = {"temperature": plan.temperature, **plan.extra_body}
        self._questions = _read_questions(plan.prompts_file) if plan.prompts_file else None

    def next(self, due: Due | None = None, endpoint: Endpoint | None = None) -> Prepared:
        """The next request; *due* may fix its lengths and *endpoint* its kind, the plan decides the rest."""
        plan, rng, seq = self._plan, self._rng, next(self._seq)
        kind: Endpoint = endpoint or self._endpoints.draw(rng)
        asked_in = (due and due.prompt_tokens) or plan.prompt_tokens.draw(rng)
        asked_out = (due and due.output_tokens) or plan.output_tokens.draw(rng)
        lane, tenant = self._lanes.draw(rng), self._tenants.draw(rng)
        prefix, own = self._prompt(seq, asked_in, due)
        stream = plan.stream and kind != "embeddings"
        body = self._body(kind, prefix, own, asked_out, stream)
        if lane is not None and lane.priority is not None:
            body["priority"] = lane.priority
        if tenant is not None:
            body["user"] = tenant.name
        hangs_up = plan.abort_share > 0 and stream and rng.random() < plan.abort_share
        return Prepared(
            seq=seq,
            endpoint=kind,
            path=plan.paths.get(kind, PATHS[kind]),
            body=json.dumps(body).encode(),
            stream=stream,
            tenant=tenant and tenant.name,
            lane=lane and lane.name,
            trace_id=f"{self._trace_ids.getrandbits(128) or 1:032x}",
            sampled=plan.trace_sampled_share > 0 and rng.random() < plan.trace_sampled_share,
            asked_prompt_tokens=None if self._questions and not plan.truncate_prompts else asked_in,
            asked_output_tokens=None if kind == "embeddings" else asked_out,
            abort_after_chunks=plan.abort_after_chunks.draw(rng) if hangs_up else None,
        )

    def backoff_s(self, attempt: int) -> float:
        """How long to wait after failed attempt number *attempt* (from 0), at most the plan's cap."""
        retries = self._plan.retries
        delay = min(retries.cap_s, retries.base_s * 2.0**attempt)
        return min(retries.cap_s, delay * (1 + self._backoff_rng.uniform(-retries.jitter, retries.jitter)))

    def _prompt(self, seq: int, words: int, due: Due | None) -> tuple[str, str]:
        if self._questions:
            question = self._questions[seq % len(self._questions)]
            return "", last_words(question, words) if self._plan.truncate_prompts else question
        if due and due.blocks:
            return "", self._prompts.from_blocks(due.blocks, words, _BLOCK_WORDS)
        plan = self._plan
        group = int(self._rng.random() * plan.prefix_groups) if plan.prefix_share else 0
        return self._prompts.make(words, round(words * plan.prefix_share), group)

    def _body(self, endpoint: str, prefix: str, own: str, max_tokens: int, stream: bool) -> dict[str, Any]:
        plan = self._plan
        if endpoint == "embeddings":
            return {"model": plan.model, "input": f"{prefix} {own}".strip(), **plan.extra_body}
        body: dict[str, Any] = {"model": plan.model, "max_tokens": max_tokens, **self._fixed}
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if plan.ignore_eos:
            body["ignore_eos"] = True
        if endpoint == "completions":
            body["prompt"] = f"{prefix} {own}".strip()
        elif endpoint == "rag":
            body["question"] = f"{prefix} {own}".strip()
        else:
            body["messages"] = _messages(prefix, own)
            self._chat_options(body)
        return body

    def _chat_options(self, body: dict[str, Any]) -> None:
        plan = self._plan
        if plan.tools_share and self._rng.random() < plan.tools_share:
            body |= {"tools": _TOOLS, "tool_choice": plan.tool_choice}
        if plan.reasoning != "default":
            body["chat_template_kwargs"] = {"enable_thinking": plan.reasoning == "on"}


class _Chooser:
    """Weighted choice by one random number; draws None from an empty list."""

    def __init__(self, items: Sequence[Any], weights: Sequence[float]) -> None:
        self._items = items
        self._cumulative = list(itertools.accumulate(weights))

    def draw(self, rng: random.Random) -> Any:
        if len(self._items) < 2:
            return self._items[0] if self._items else None
        return rng.choices(self._items, cum_weights=self._cumulative)[0]


def _messages(prefix: str, own: str) -> list[dict[str, str]]:
    system = [{"role": "system", "content": prefix}] if prefix else []
    return [*system, {"role": "user", "content": own or "Go on."}]


def _read_questions(path: str) -> list[str]:
    """The `prompt` of each line of a JSONL file; see `loadtests.quality`."""
    return [question.prompt for question in read_questions(path)]
