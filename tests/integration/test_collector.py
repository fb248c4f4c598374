"""The shipped configuration in the real collector: what it keeps, what it counts, and what never leaves it."""

import hashlib
import json
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from inferwatch.collector.firing import written
from inferwatch.stack import state
from inferwatch.stack.state import State

from . import otlp

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "fixtures" / "collector"
SECRET = "xyzzy-my-mothers-maiden-name"
FLUSH = 15.0
"""Seconds until a span is seen in the metrics at the latest: a batch and the flush interval, on a busy machine."""


def test_no_content_leaves_whatever_carries_it(tmp_path: Path) -> None:
    """Prompts in attributes, events, names, messages, links, scopes, resources, tracestate and logs are nowhere."""
    hidden = {
        "gen_ai.prompt": SECRET,
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [SECRET]}]),
        "gen_ai.output.messages": SECRET,
        "gen_ai.system_instructions": SECRET,
        "gen_ai.request.stop_sequences": [SECRET],
        "input.value": SECRET,
        "llm.input_messages.0.message.content": SECRET,
        "retrieval.documents.0.document.content": SECRET,
        "rag.question": SECRET,
        "rag.context": {"text": SECRET},
        "db.statement": f"select '{SECRET}'",
        "url.full": f"http://x/?q={SECRET}",
        "exception.message": SECRET,
        "something.new": SECRET,
        "user.id": f"{SECRET}@mail.example",
    }
    kept = {"rag.stage": "generate", "gen_ai.request.model": "tiny", "rag.top_k": 4, "rag.cache.level": "l1"}
    events = [
        {
            "name": "gen_ai.user.message",
            "timeUnixNano": "1",
            "attributes": otlp.attributes({"content": SECRET}),
        },
        {"name": SECRET, "timeUnixNano": "1"},
        {
            "name": "exception",
            "timeUnixNano": "1",
            "attributes": otlp.attributes(
                {"exception.type": "ValueError", "exception.message": SECRET, "exception.stacktrace": SECRET}
            ),
        },
    ]
    link = {"traceId": "1" * 32, "spanId": "1" * 16, "attributes": otlp.attributes({"q": SECRET})}
    span = otlp.span(
        "chat tiny",
        more={**hidden, **kept},
        status=otlp.ERROR,
        events=events,
        traceState=f"vendor={SECRET}",
    )
    span["status"]["message"] = f"the prompt {SECRET} is too long"
    linked = otlp.span("linked", links=[link])
    sentence = otlp.span(f"please tell me what {SECRET} means to you and me")
    request = otlp.traces(
        [span, sentence, linked], **{"process.command_args": SECRET, "service.version": "1"}
    )
    request["resourceSpans"][0]["scopeSpans"][0]["scope"]["attributes"] = otlp.attributes({"p": SECRET})
    with otlp.collector(tmp_path) as collector:
        assert otlp.post(collector.http, "traces", request) == 200
        assert otlp.post(collector.http, "logs", logs_with(SECRET)) == 200
        otlp.until(lambda: len(collector.written()) == 2, 30, "both spans were written")
        otlp.until(
            lambda: collector.sample("traces_span_metrics_calls_total") == 3, FLUSH, "all were counted"
        )
        otlp.until(lambda: (tmp_path / "logs.jsonl").is_file(), 20, "logs were written")

        assert SECRET not in collector.said()
        by_name = {one["name"]: one for one in collector.written()}
    assert sorted(by_name) == ["chat tiny", "withheld"]
    chat = by_name["chat tiny"]
    user = chat["attributes"].pop("user.id")
    assert chat["attributes"] == {
        "rag.stage": "generate", "gen_ai.request.model": "tiny", "rag.top_k": "4", "rag.cache.level": "l1",
    }  # fmt: skip
    assert user == hashlib.sha256(f"{SECRET}@mail.example".encode()).hexdigest()
    assert [(event["name"], otlp.plain(event["attributes"])) for event in chat["events"]] == [
        ("exception", {"exception.type": "ValueError"})
    ]
    assert chat["status"] == {"code": 2}
    assert chat["resource"] == {
        "service.name": "rag", "service.version": "1", "deployment.environment.name": "staging",
    }  # fmt: skip


def logs_with(secret: str) -> dict[str, Any]:
    """Log records that carry *secret* in each way that engines and instrumentations have."""
    bodies: list[dict[str, Any]] = [
        {"body": otlp.value(f"Received request cmpl-1: prompt: '{secret}', params: SamplingParams(n=1)")},
        {"body": otlp.value(f'rejected {{"messages": [{{"content": "{secret}"}}]}}')},
        {"body": otlp.value({"content": secret})},
        {"body": otlp.value("fine"), "attributes": otlp.attributes({"prompt": secret})},
        {"body": otlp.value(secret), "eventName": "gen_ai.user.message"},
        {"body": otlp.value(secret), "attributes": otlp.attributes({"event.name": "gen_ai.choice"})},
    ]
    records = [{"timeUnixNano": str(time.time_ns()), "severityNumber": 9, **body} for body in bodies]
    resource = {"attributes": otlp.attributes({"service.name": "vllm", "process.command_args": secret})}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": {}, "logRecords": records}]}]}


@pytest.mark.parametrize(
    "pasted",
    [
        "sk-abcdefghijklmnopqrstuvwx", "hf_abcdefghijklmnopqrstuv", "AKIAABCDEFGHIJKLMNOP", "Bearer abcdefgh12345678",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijkl", "ada@example.org", "4111 1111 1111 1111",
    ],
)  # fmt: skip
def test_what_people_paste_is_masked_even_where_attributes_may_pass(tmp_path: Path, pasted: str) -> None:
    """Keys, tokens, addresses and card numbers are taken out of values that are allowed, and of log lines."""
    record = {"timeUnixNano": "1", "body": otlp.value(f"denied for {pasted} today")}
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    with otlp.collector(tmp_path) as collector:
        of = {"error.type": f"denied:{pasted}", "gen_ai.response.id": f"denied for {pasted} today"}
        collector.send(otlp.span(f"chat:{pasted}", more=of))
        assert otlp.post(collector.http, "logs", logs) == 200
        otlp.until(lambda: len(collector.written()) == 1, 30, "the span was written")
        otlp.until(lambda: (tmp_path / "logs.jsonl").is_file(), 20, "the log was written")

        assert pasted not in collector.said()
        (kept,) = collector.written()
    # A value of three words or more is no name, whatever is in it.
    masked = "withheld" if pasted.count(" ") > 1 else "denied:****"
    assert kept["attributes"] == {"error.type": masked, "gen_ai.response.id": "withheld"}
    assert "denied for **** today" in (tmp_path / "logs.jsonl").read_text()


def test_nothing_hides_inside_what_may_pass(tmp_path: Path) -> None:
    """Maps, lists, sentences, names of scopes and schemas, under names that are allowed: nowhere, and no label."""
    sentence = f"please explain {SECRET} to me"
    kvlist = {"role": "user", "content": [{"text": SECRET}]}
    of = {
        "gen_ai.request.model": kvlist,
        "rag.stage": [kvlist],
        "gen_ai.request.top_k": [[SECRET]],
        "gen_ai.response.finish_reasons": ["stop", sentence],
        "gen_ai.usage.prompt": SECRET,
        "gen_ai.usage.input_tokens": SECRET,
        "gen_ai.latency.prompt": SECRET,
        "llm.token_count.text": SECRET,
        "inferwatch.stream.text": SECRET,
        "error.type": sentence,
        "gen_ai.response.model": sentence,
        "gen_ai.request.id": "r-1",
    }
    events = [
        {"name": "rag.found", "timeUnixNano": "1", "attributes": otlp.attributes(found)}
        for found in (
            {"rag.query": SECRET, "rag.documents": 3},
            {"rag.stage": kvlist},
            {"exception.type": sentence},
            {"prompt.tokens": sentence},
        )
    ]
    body = otlp.traces(
        [
            otlp.span("chat", more=of, events=events),
            otlp.span(f"what is {SECRET}"),
            otlp.span("chat", more={"gen_ai.response.finish_reasons": ["stop", "length"]}),
        ],
        **{"host.name": kvlist, "service.version": sentence},
    )
    resource = body["resourceSpans"][0]
    scope = resource["scopeSpans"][0]
    resource["schemaUrl"] = scope["schemaUrl"] = f"http://{SECRET}"
    scope["scope"] = {"name": sentence, "version": sentence}
    with otlp.collector(tmp_path) as collector:
        assert otlp.post(collector.http, "traces", body) == 200
        assert otlp.post(collector.http, "logs", hidden_in_logs(SECRET, sentence, kvlist)) == 200
        otlp.until(lambda: len(collector.written()) == 3, 30, "all were written")
        otlp.until(
            lambda: collector.sample("traces_span_metrics_calls_total") == 3, FLUSH, "all were counted"
        )
        otlp.until(lambda: (tmp_path / "logs.jsonl").is_file(), 20, "logs were written")

        assert SECRET not in collector.said()
        written = collector.written()  # in any order: each is a trace of its own
    (listed,) = (one for one in written if "gen_ai.response.finish_reasons" in one["attributes"])
    (first,) = (one for one in written if one is not listed and one["name"] == "chat")
    (named,) = (one for one in written if one is not listed and one is not first)
    assert first["attributes"] == {
        "error.type": "withheld", "gen_ai.response.model": "withheld", "gen_ai.request.id": "r-1",
    }  # fmt: skip
    assert otlp.plain(first["events"][0]["attributes"]) == {"rag.documents": "3"}
    assert named["name"] == "withheld"
    reasons = listed["attributes"]["gen_ai.response.finish_reasons"]
    assert [one["stringValue"] for one in reasons["values"]] == ["stop", "length"]


def hidden_in_logs(secret: str, sentence: str, kvlist: otlp.Json) -> otlp.Json:
    """Records whose every field but the body's free text carries *secret*, and bodies that say what they quote."""
    records: list[otlp.Json] = [
        {"body": otlp.value("fine"), "severityText": sentence},
        {"body": otlp.value("fine"), "eventName": sentence},
        {"body": otlp.value("fine"), "attributes": otlp.attributes({"logger": sentence})},
        {"body": otlp.value("fine"), "attributes": otlp.attributes({"error.type": kvlist})},
        *(
            {"body": otlp.value(f"{quoted}{secret}' went wrong")}
            for quoted in (
                "user_prompt: ", "'system_prompt': '", '{\\"content\\": \\"', '{"input_text": "', "output: '",
                "Prompt after applying chat template '", "Input should be text [input_value='", "GET /find?q=",
            )
        ),
    ]  # fmt: skip
    records = [{"timeUnixNano": "1", "severityNumber": 9, **one} for one in records]
    resource = {"attributes": otlp.attributes({"service.name": "vllm", "host.name": kvlist})}
    scopes = [{"scope": {"name": sentence}, "schemaUrl": f"http://{secret}", "logRecords": records}]
    return {"resourceLogs": [{"resource": resource, "schemaUrl": f"http://{secret}", "scopeLogs": scopes}]}


def test_production_keeps_what_matters_a_share_of_the_rest_and_counts_everything(tmp_path: Path) -> None:
    """Errors, slow traces, slow first tokens, slow stages and firing models stay; of 600 others the share by id."""
    firing = tmp_path / "firing.yaml"
    firing.write_text('["burning"]\n')
    plain = [otlp.span("plain") for _ in range(600)]
    special = {
        "failed": otlp.span("failed", status=otlp.ERROR),
        "slow": otlp.span("slow", seconds=2.1),
        "late": otlp.span("llm_request", seconds=1.0, more={"gen_ai.latency.time_to_first_token": 0.6}),
        "stage": otlp.span("rag retrieval", seconds=0.25, more={"rag.stage": "retrieval"}),
        "burning": otlp.span("chat burning", more={"gen_ai.request.model": "burning"}),
    }
    trace = special["failed"]["traceId"]
    sibling = otlp.span("sibling", trace=trace, parent=special["failed"]["spanId"])
    in_share = {one["traceId"] for one in plain if int(one["traceId"][-4:], 16) < 655}
    shown: set[str] = set()

    def counted(collector: otlp.Collector) -> float:
        page = collector.metrics()
        shown.update(re.findall(r'trace_id="([0-9a-f]{32})"', page))
        return otlp.total(page, "traces_span_metrics_calls_total")

    with otlp.collector(
        tmp_path, environment="production", INFERWATCH_FIRING_MODELS=f"${{file:{firing}}}"
    ) as collector:
        for start in range(0, 600, 100):
            collector.send(*plain[start : start + 100])
        collector.send(*special.values(), sibling)
        total = 600 + len(special) + 1
        otlp.until(lambda: counted(collector) == total, FLUSH, "all were counted")
        otlp.until(
            lambda: len(collector.written()) >= 6 + len(in_share), 30, "the interesting ones were kept"
        )
        time.sleep(2.0)
        kept = {one["traceId"] for one in collector.written()}
        names = collector.names()

    assert kept == in_share | {one["traceId"] for one in special.values()}
    assert "sibling" in names
    assert shown
    assert shown <= kept


def test_staging_keeps_every_trace(tmp_path: Path) -> None:
    """A hundred uninteresting traces, a hundred kept."""
    plain = [otlp.span("plain") for _ in range(100)]
    with otlp.collector(tmp_path) as collector:
        collector.send(*plain)
        otlp.until(lambda: len(collector.written()) == 100, 30, "all were written")

        assert {one["traceId"] for one in collector.written()} == {one["traceId"] for one in plain}


def test_log_records_keep_their_trace_and_errors_are_counted(tmp_path: Path) -> None:
    """A line of a service is found by the trace it belongs to, and one of severity ERROR is a metric."""
    trace, span = "a" * 32, "b" * 16
    records = [
        {
            "timeUnixNano": "1",
            "severityNumber": level,
            "body": otlp.value(text),
            "traceId": trace,
            "spanId": span,
        }
        for level, text in ((9, "started"), (17, "engine core died"))
    ]
    resource = {"attributes": otlp.attributes({"service.name": "vllm"})}
    with otlp.collector(tmp_path) as collector:
        body = {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": records}]}]}
        assert otlp.post(collector.http, "logs", body) == 200
        otlp.until(
            lambda: collector.sample("llm_log_errors_total", service_name="vllm") == 1, 20, "one error"
        )
        otlp.until(lambda: (tmp_path / "logs.jsonl").is_file(), 20, "logs were written")
        line = json.loads((tmp_path / "logs.jsonl").read_text().splitlines()[0])

    found = line["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert [(one["body"]["stringValue"], one["traceId"], one["spanId"]) for one in found] == [
        ("started", trace, span), ("engine core died", trace, span),
    ]  # fmt: skip


def test_a_dead_backend_loses_nothing_over_the_collectors_own_restart(tmp_path: Path) -> None:
    """What was kept while Jaeger was down waits on disk: another collector, started later, delivers all of it."""
    (backend,) = otlp.free_ports(1)
    env = {
        "INFERWATCH_TRACE_EXPORTERS": "[otlp_grpc/jaeger]",
        "INFERWATCH_JAEGER_ENDPOINT": f"127.0.0.1:{backend}",
    }
    first = [otlp.span("while dead") for _ in range(50)]
    with otlp.collector(tmp_path / "front", **env) as collector:
        collector.send(*first)
        time.sleep(4.0)
        collector.send(otlp.span("undecided"))
    with (
        otlp.collector(tmp_path / "backend", INFERWATCH_OTLP_GRPC_PORT=str(backend)) as keeper,
        otlp.collector(tmp_path / "front", **env),
    ):
        otlp.until(lambda: len(keeper.written()) == 51, 60, "all spans reached the backend")

        assert {one["traceId"] for one in first} < {one["traceId"] for one in keeper.written()}


def test_a_reload_of_the_sampler_keeps_counts_and_traces(tmp_path: Path) -> None:
    """The first collector counts and passes on; the second is reloaded with a new list while traces come."""
    firing = tmp_path / "firing.yaml"
    firing.write_text("[]\n")
    sampler_env = {
        "INFERWATCH_TRACE_INTAKE": "[memory_limiter]",
        "INFERWATCH_FIRING_MODELS": f"${{file:{firing}}}",
    }
    with otlp.collector(tmp_path / "sampler", environment="production", **sampler_env) as sampler:
        front_env = {
            "INFERWATCH_TRACE_CHOICE": "[filter/links, batch]",
            "INFERWATCH_TRACE_EXPORTERS": "[otlp_grpc/jaeger]",
            "INFERWATCH_JAEGER_ENDPOINT": f"127.0.0.1:{sampler.grpc}",
        }
        with otlp.collector(tmp_path / "front", environment="production", **front_env) as front:
            sent = keep_sending(front, 8.0, lambda: reload_with(sampler, firing, ["tiny"]))
            otlp.until(
                lambda: front.sample("traces_span_metrics_calls_total") == len(sent),
                FLUSH,
                "all were counted",
            )
            errors = {one["traceId"] for one in sent if one["name"] == "failed"}
            otlp.until(
                lambda: errors <= {one["traceId"] for one in sampler.written()}, 40, "all errors were kept"
            )
            late = [otlp.span("chat tiny", more={"gen_ai.request.model": "tiny"}) for _ in range(20)]
            front.send(*late)
            otlp.until(
                lambda: {one["traceId"] for one in late} <= {one["traceId"] for one in sampler.written()},
                30,
                "every trace of the firing model was kept",
            )


def test_a_models_name_is_a_name_whatever_it_looks_like(tmp_path: Path) -> None:
    """A firing model called like an instruction to the collector: it starts, and keeps that model's traces."""
    firing = tmp_path / "firing.yaml"
    model = "${nope:x}-${env:HOME}"
    firing.write_text(written([model]))
    with otlp.collector(
        tmp_path, environment="production", INFERWATCH_FIRING_MODELS=f"${{file:{firing}}}"
    ) as collector:
        collector.send(otlp.span("chat", trace="a" * 28 + "ffff", more={"gen_ai.request.model": model}))
        otlp.until(lambda: len(collector.written()) == 1, 30, "the trace was kept")


def reload_with(sampler: otlp.Collector, firing: Path, models: list[str]) -> None:
    """As the watcher does."""
    firing.write_text(json.dumps(models))
    otlp.signal(sampler.record, signal.SIGHUP)


def keep_sending(front: otlp.Collector, seconds: float, in_the_middle: Any) -> list[otlp.Json]:
    """Send an error and a plain trace every 100 ms; something happens half-way."""
    sent: list[otlp.Json] = []
    happens = threading.Timer(seconds / 2, in_the_middle)
    happens.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pair = [otlp.span("failed", status=otlp.ERROR), otlp.span("plain")]
        front.send(*pair)
        sent += pair
        time.sleep(0.1)
    happens.join()
    return sent


RULE = {
    "groups": [
        {
            "name": "test",
            "interval": "1s",
            "rules": [
                {
                    "alert": "Burning",
                    "expr": "vector(1)",
                    "labels": {"severity": "page", "model": "burning"},
                }
            ],
        }
    ]
}


def test_a_real_alert_makes_the_sampler_keep_its_models_traces(tmp_path: Path) -> None:
    """Prometheus fires, the watcher sees it, writes the list and signals the sampler: from then on all are kept."""
    firing = tmp_path / "firing.yaml"
    firing.write_text("[]\n")
    with (
        otlp.collector(
            tmp_path / "sampler", environment="production", INFERWATCH_FIRING_MODELS=f"${{file:{firing}}}"
        ) as sampler,
        otlp.running(otlp.prometheus(tmp_path, RULE), tmp_path) as prometheus,
    ):
        plain = [otlp.span("plain", trace="a" * 28 + "ffff", more={"gen_ai.request.model": "burning"})]
        sampler.send(*plain)
        time.sleep(3.0)
        assert sampler.written() == []
        state.save(tmp_path / "state.json", State(19000, None, {"collector": sampler.record}))
        with otlp.running(otlp.watcher(tmp_path, firing, prometheus.url), tmp_path) as watcher:
            reloads = "inferwatch_sampler_reloads_total"
            otlp.until(lambda: otlp.total(otlp.get(f"{watcher.url}/metrics"), reloads) == 1, 30, "a signal")
            assert json.loads(firing.read_text()) == ["burning"]
            late = [
                otlp.span("late", trace=f"{n:028x}ffff", more={"gen_ai.request.model": "burning"})
                for n in range(1, 21)
            ]
            other = otlp.span("other", trace="b" * 28 + "ffff", more={"gen_ai.request.model": "calm"})
            otlp.until(lambda: is_up(sampler), 20, "the sampler is back")
            sampler.send(*late, other)
            otlp.until(lambda: len(sampler.written()) == 20, 30, "all of the firing model's were kept")
            assert sampler.names() == {"late"}


def is_up(collector: otlp.Collector) -> bool:
    """Whether its health check answers."""
    try:
        return bool(otlp.get(f"{collector.record.url}/"))
    except OSError:
        return False
