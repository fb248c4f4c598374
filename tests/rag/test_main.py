"""`python -m rag` as a process: it answers, ends on a signal, and says what is wrong with its configuration."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from .conftest import DOCUMENTS, TINY

ROOT = Path(__file__).parents[2]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _ready(url: str, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=2):
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.1)
    raise AssertionError(process.communicate(timeout=5))


def test_python_m_rag_serves_until_a_signal(tmp_path):
    """Flags go over the file; an engine that is not there is a 502 with its reason; SIGTERM ends it with status 0."""
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"title": t, "text": x}) + "\n" for t, x in DOCUMENTS))
    config = tmp_path / "rag.yml"
    config.write_text(f"corpus: {{file: {corpus}}}\nretrieval: {{top_k: 2, keep: 1, min_score: -1}}\n")
    listen = f"127.0.0.1:{_free_port()}"
    words = ["--config", str(config), "--listen", listen, "--engine", "http://127.0.0.1:1", "--model", "tiny"]
    process = subprocess.Popen(
        [sys.executable, "-m", "rag", *words, "--model-dir", str(TINY), "--data-dir", str(tmp_path / "d"), "--faults"],
        cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        _ready(f"http://{listen}", process)
        body = json.dumps({"question": "cat ?"}).encode()
        try:
            with urllib.request.urlopen(f"http://{listen}/v1/rag/answer", body, timeout=10):
                raise AssertionError("an engine that is not there answered")
        except urllib.error.HTTPError as error:
            with error:
                assert error.code == 502
                assert json.load(error)["error"]["type"] == "unreachable"
        with urllib.request.urlopen(f"http://{listen}/faults", timeout=10) as answer:
            assert json.load(answer) == {}
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 0


def test_a_wrong_configuration_ends_it_with_one_clean_message(tmp_path):
    """Status 1, file and key, no traceback; the same for a model that is not there."""
    config = tmp_path / "rag.yml"
    config.write_text("engine: {url: here}\n")
    for words, says in (
        (["--config", str(config)], "engine.url: is no base URL"),
        (["--model-dir", str(tmp_path)], "config.json, model.safetensors, tokenizer.json missing"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "rag", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert says in done.stderr
        assert "Traceback" not in done.stderr
