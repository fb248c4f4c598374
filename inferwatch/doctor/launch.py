"""The five checks before an engine takes traffic: weights, tokenizer, memory, health endpoints, trace id."""

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from inferwatch.doctor.evidence import Client, Evidence
from inferwatch.doctor.finding import Finding
from inferwatch.stack.errors import StackError

CHUNK_BYTES = 4 * 1024 * 1024
# Under this share of its memory a host starts to reclaim pages that the engine needs.
MEMORY_FREE_RATIO = 0.1
TRACE_SECONDS = 15.0


@dataclass(frozen=True)
class Inputs:
    """
    What the person hands in; what is missing leaves its check unknown.

    Attributes:
        manifest: lines `SHA256  FILE`, as sha256sum writes them.
        weights: folder of those files; else the model folder that the server was started with.
        golden: JSON with `prompt` and its `tokens`, made with a tokenizer that is known to be right.
        trace_url: where a trace is looked up; `{trace_id}` stands for its id (Jaeger: …/api/traces/{trace_id}).
    """

    manifest: Path | None = None
    weights: Path | None = None
    golden: Path | None = None
    trace_url: str | None = None


def weights(seen: Evidence, inputs: Inputs) -> Finding:
    """Every file of the manifest has the hash that it had when the model was released."""
    name = "launch-weights"
    folder = inputs.weights or (Path(seen.process.model) if seen.process else None)
    if inputs.manifest is None:
        return Finding(name, seen.url, "unknown", "give --manifest, made with: sha256sum * > MANIFEST")
    if folder is None or not folder.is_dir():
        return Finding(
            name, seen.url, "unknown", f"{folder or 'the model'} is no folder here; give --weights DIR"
        )
    wrong = [text for digest, file in _manifest(inputs.manifest) if (text := _differs(folder / file, digest))]
    if not wrong:
        return Finding(name, seen.url, "ok", f"{folder} matches {inputs.manifest}")
    return Finding(
        name,
        seen.url,
        "fault",
        "; ".join(wrong),
        "The engine serves other weights, or another tokenizer, than those that were released and evaluated.",
        f"fetch the model again, then start with it; compare with: sha256sum -c {inputs.manifest}",
    )


def _manifest(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        digest, _, file = line.strip().partition(" ")
        file = file.strip().removeprefix("*")
        if not line.strip():
            continue
        if len(digest) != hashlib.sha256().digest_size * 2 or not file:
            raise StackError(f"{path}:{number}: {line!r}: not `SHA256  FILE`; make it with sha256sum")
        yield digest.lower(), file


def _differs(path: Path, digest: str) -> str:
    if not path.is_file():
        return f"{path.name} is missing"
    found = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(CHUNK_BYTES):
            found.update(chunk)
    return (
        "" if found.hexdigest() == digest else f"{path.name} is {found.hexdigest()[:12]}…, not {digest[:12]}…"
    )


def tokenizer(seen: Evidence, inputs: Inputs, client: Client) -> Finding:
    """The engine cuts a golden prompt into the known tokens, counts as many, and refuses what is too long."""
    name = "launch-tokenizer"
    if inputs.golden is None:
        return Finding(name, seen.url, "unknown", 'give --golden, JSON: {"prompt": "…", "tokens": [1, 2, …]}')
    prompt, wanted = _golden(inputs.golden)
    answer = client.post("/tokenize", {"model": seen.model, "prompt": prompt})
    if answer.status != 200:
        return Finding(
            name, seen.url, "unknown", f"/tokenize answers HTTP {answer.status}: {answer.text[:120]}"
        )
    tokens = answer.json().get("tokens")
    counted = _prompt_tokens(client, seen.model, prompt)
    faults = []
    if tokens != wanted:
        faults.append(f"the golden prompt becomes {_short(tokens)}, not {_short(wanted)}")
    if counted != len(wanted):
        faults.append(f"a completion counts {counted} prompt tokens, not {len(wanted)}")
    if seen.max_model_len and (cut := _is_cut(client, seen.model, prompt, len(wanted), seen.max_model_len)):
        faults.append(cut)
    if not faults:
        return Finding(
            name,
            seen.url,
            "ok",
            f"the golden prompt's {len(wanted)} tokens agree; one over {seen.max_model_len} tokens is refused",
        )
    return Finding(
        name,
        seen.url,
        "fault",
        "; ".join(faults),
        "Prompts reach the model other than they were meant: answers get worse, and nothing else shows it.",
        "--tokenizer and --chat-template of the released model; no truncate_prompt_tokens in front of the engine",
    )


def _golden(path: Path) -> tuple[str, list[int]]:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        prompt, tokens = raw["prompt"], raw["tokens"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StackError(f'{path}: {error!r}; write {{"prompt": "…", "tokens": [1, 2, …]}}') from error
    if not isinstance(prompt, str) or not isinstance(tokens, list) or not tokens:
        raise StackError(f"{path}: prompt must be a text and tokens a list of numbers")
    return prompt, tokens


def _prompt_tokens(client: Client, model: str, prompt: str) -> int | None:
    answer = client.post("/v1/completions", {"model": model, "prompt": prompt, "max_tokens": 1}).json()
    usage = answer.get("usage") if isinstance(answer, dict) else None
    return usage.get("prompt_tokens") if usage else None


def _is_cut(client: Client, model: str, prompt: str, tokens: int, limit: int) -> str:
    """A prompt over the model's length must be refused; anything else means that it was shortened."""
    long = " ".join([prompt] * (limit // tokens + 2))
    answer = client.post("/v1/completions", {"model": model, "prompt": long, "max_tokens": 1})
    if answer.status != 200:
        return ""
    usage = answer.json().get("usage") or {}
    return f"a prompt over {limit} tokens is answered, counted as {usage.get('prompt_tokens')}: it was cut"


def _short(tokens: object) -> str:
    return f"{str(tokens)[:60]}…" if len(str(tokens)) > 60 else str(tokens)


def memory(seen: Evidence, _: Inputs) -> Finding:
    """The host has room left beside what the engine took at its start."""
    name = "launch-memory"
    if seen.process is None:
        return Finding(
            name,
            seen.url,
            "unknown",
            "no vLLM process behind this address is visible here; the node agent watches its memory",
        )
    free = psutil.virtual_memory()
    try:
        server = psutil.Process(seen.process.pid)
        taken = sum(p.memory_info().rss for p in (server, *server.children(recursive=True)))
    except psutil.NoSuchProcess:
        return Finding(name, seen.url, "unknown", f"process {seen.process.pid} is gone")
    ratio = free.available / free.total
    said = f"{free.available / 2**30:.1f} of {free.total / 2**30:.1f} GiB of the host are free; the engine has {taken / 2**30:.1f}"
    if ratio >= MEMORY_FREE_RATIO:
        return Finding(name, seen.url, "ok", said)
    return Finding(
        name,
        seen.url,
        "fault",
        said,
        "The first burst of long prompts takes the rest: the kernel reclaims pages, everything slows down, and "
        "then the largest process is killed, which is the engine.",
        "a smaller KV cache (--gpu-memory-utilization, VLLM_CPU_KVCACHE_SPACE), or fewer neighbours",
    )


def health_endpoints(seen: Evidence, _: Inputs) -> Finding:
    """/health and /ping answer, for load balancers use one or the other."""
    name = "launch-health"
    said = ", ".join(f"{path} {status or 'no answer'}" for path, status in seen.health.items())
    if all(status == 200 for status in seen.health.values()):
        return Finding(name, seen.url, "ok", said)
    return Finding(
        name,
        seen.url,
        "fault",
        said,
        "A load balancer that asks the other one takes the engine out of service, or never in.",
        "let /health and /ping through the gateway; without them the engine is dead",
    )


def trace(seen: Evidence, inputs: Inputs, client: Client) -> Finding:
    """The request's id comes back with the answer, and its trace arrives where traces are kept."""
    name = "launch-trace-id"
    returned = str(seen.token.json().get("id", "")) if seen.token.status == 200 else ""
    if seen.request_id not in returned:
        return Finding(
            name,
            seen.url,
            "fault",
            f"X-Request-Id {seen.request_id} was sent, the answer's id is {returned or 'missing'}",
            "A user's complaint cannot be found in the engine's logs and spans.",
            "let X-Request-Id and traceparent through the gateway",
        )
    if inputs.trace_url is None:
        return Finding(
            name, seen.url, "unknown", "the request id is carried; for the trace, give --trace-url"
        )
    if _arrived(client, inputs.trace_url.replace("{trace_id}", seen.trace_id)):
        return Finding(name, seen.url, "ok", f"request id carried, trace {seen.trace_id} arrived")
    return Finding(
        name,
        seen.url,
        "fault",
        f"trace {seen.trace_id} did not arrive within {TRACE_SECONDS:g} s",
        "Traces end at the gateway: what happens to a request inside the engine stays unseen.",
        "--otlp-traces-endpoint of the collector",
    )


def _arrived(client: Client, url: str) -> bool:
    deadline = time.monotonic() + TRACE_SECONDS
    while time.monotonic() < deadline:
        if client.get(url).status == 200:
            return True
        time.sleep(0.5)
    return False
