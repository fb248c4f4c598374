"""The shipped configuration in the real collector: what never leaves it, and what of logs does."""

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import pytest

from . import otlp

pytestmark = pytest.mark.integration
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
