"""The five launch checks on an engine that answers as each test wants."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner

from inferwatch.commands import doctor as command
from inferwatch.doctor import launch
from inferwatch.doctor.evidence import Answer, Client, Evidence
from inferwatch.doctor.launch import Inputs
from inferwatch.stack.errors import StackError


class Engine(ThreadingHTTPServer):
    """Cuts prompts at spaces into their lengths; *limit* tokens at most, or *cuts* them silently."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.limit, self.cuts, self.traces = 16, False, set[str]()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Engine

    def do_GET(self) -> None:
        self._send(200 if self.path.rpartition("/")[2] in self.server.traces else 404, {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tokens = [len(word) for word in body["prompt"].split()]
        if self.path == "/tokenize":
            self._send(200, {"tokens": tokens})
        elif len(tokens) > self.server.limit and not self.server.cuts:
            self._send(400, {"error": "too long"})
        else:
            self._send(200, {"usage": {"prompt_tokens": min(len(tokens), self.server.limit)}})

    def _send(self, status: int, body: Mapping[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Tests' output is for results."""


@pytest.fixture
def engine() -> Iterator[Engine]:
    """A small engine."""
    with Engine() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def client(engine: Engine) -> Iterator[Client]:
    """A client of it."""
    made = Client(engine.url)
    yield made
    made.close()


def seen(url: str = "http://127.0.0.1:1", answer_id: str = "cmpl-r1", health: int = 200) -> Evidence:
    """What was gathered of an engine on another host."""
    return Evidence(
        url=url,
        version="0.32.0",
        model="m",
        max_model_len=16,
        pages=(),
        health={"/health": 200, "/ping": health},
        token=Answer(200, json.dumps({"id": answer_id}), 0.1),
        request_id="r1",
        trace_id="ab" * 16,
        process=None,
    )


def golden(folder: Path, tokens: list[int]) -> Path:
    """The golden prompt, `to be or not`, with *tokens* for its words."""
    file = folder / "golden.json"
    file.write_text(json.dumps({"prompt": "to be or not", "tokens": tokens}))
    return file


def test_weights_are_hashed_against_the_manifest(tmp_path: Path) -> None:
    """Equal files are ok; one that changed and one that is missing are named; without a manifest it is unknown."""
    (tmp_path / "a.bin").write_bytes(b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(f"{digest}  a.bin\n")
    bad.write_text(f"{'0' * 64} *a.bin\n{digest}  b.bin\n")

    assert launch.weights(seen(), Inputs(manifest=good, weights=tmp_path)).state == "ok"
    fault = launch.weights(seen(), Inputs(manifest=bad, weights=tmp_path))
    assert fault.state == "fault"
    assert "a.bin is " in fault.evidence and "b.bin is missing" in fault.evidence
    assert launch.weights(seen(), Inputs(weights=tmp_path)).state == "unknown"
    bad.write_text("nonsense\n")
    with pytest.raises(StackError, match=r"bad:1: 'nonsense': not `SHA256  FILE`; make it with sha256sum"):
        launch.weights(seen(), Inputs(manifest=bad, weights=tmp_path))


def test_the_golden_prompt_must_become_its_tokens(client: Client, tmp_path: Path) -> None:
    """`to be or not` is 2 2 2 3 here: agreed; with another tokenizer it is not."""
    right = Inputs(golden=golden(tmp_path, [2, 2, 2, 3]))
    assert launch.tokenizer(seen(), right, client).state == "ok"

    wrong = launch.tokenizer(seen(), Inputs(golden=golden(tmp_path, [2, 2, 5])), client)
    assert wrong.state == "fault"
    assert "becomes [2, 2, 2, 3], not [2, 2, 5]" in wrong.evidence
    assert "counts 4 prompt tokens, not 3" in wrong.evidence


def test_a_prompt_that_is_cut_silently_is_a_fault(engine: Engine, client: Client, tmp_path: Path) -> None:
    """More tokens than the model takes must be refused."""
    engine.cuts = True
    found = launch.tokenizer(seen(), Inputs(golden=golden(tmp_path, [2, 2, 2, 3])), client)

    assert found.state == "fault"
    assert "a prompt over 16 tokens is answered, counted as 16: it was cut" in found.evidence


def test_both_health_endpoints_must_answer() -> None:
    """/ping that a gateway does not let through is a fault."""
    assert launch.health_endpoints(seen(), Inputs()).state == "ok"
    assert launch.health_endpoints(seen(health=404), Inputs()).evidence == "/health 200, /ping 404"
    assert launch.health_endpoints(seen(health=404), Inputs()).state == "fault"


def test_the_trace_must_arrive(engine: Engine, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost request id and a lost trace are faults; without a place to look it is unknown."""
    monkeypatch.setattr(launch, "TRACE_SECONDS", 0.2)
    where = Inputs(trace_url=f"{engine.url}/api/traces/{{trace_id}}")

    assert launch.trace(seen(answer_id="cmpl-other"), where, client).state == "fault"
    assert launch.trace(seen(), Inputs(), client).state == "unknown"
    assert launch.trace(seen(), where, client).mend == "--otlp-traces-endpoint of the collector"
    engine.traces.add("ab" * 16)
    assert launch.trace(seen(), where, client).state == "ok"


def test_memory_of_another_host_is_unknown() -> None:
    """Nothing is guessed about a host that cannot be looked at."""
    assert launch.memory(seen(), Inputs()).state == "unknown"


def test_an_engine_that_is_not_there_is_an_error_and_not_a_finding() -> None:
    """The message names the URL."""
    from inferwatch import cli

    answer = CliRunner().invoke(cli.main, ["doctor", "http://127.0.0.1:1", "--seconds", "0"])
    assert answer.exit_code == 1
    assert "http://127.0.0.1:1 does not answer" in answer.output
    assert command.shown([]).endswith("0 faults in 0 checks")
