"""Starting and ending an engine process, with one that is a few lines of Python."""

import os
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from loadtests.engineproc import EngineError, Start, running, with_flags

# Answers /health after half a second, ignores SIGTERM when told to, and has a child process.
ENGINE = """
import http.server, os, signal, subprocess, sys, time
time.sleep(0.5)
if '--stubborn' in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])
print(child.pid, flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.send_response(200); self.send_header('content-length', '0'); self.end_headers()
http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").split()[2] != "Z"


def test_flags() -> None:
    """True, False and values become the flags that vLLM's command line takes."""
    flags = {
        "max_num_seqs": 8,
        "enable_prefix_caching": False,
        "async-scheduling": True,
        "quantization": "fp8",
    }
    expected = [
        "x",
        "--max-num-seqs",
        "8",
        "--no-enable-prefix-caching",
        "--async-scheduling",
        "--quantization",
        "fp8",
    ]

    assert with_flags(["x"], flags) == expected


def test_started_ready_and_gone(tmp_path: Path) -> None:
    """Inside the block the engine answers; after it the process and its child are gone."""
    port, log = _free_port(), tmp_path / "logs" / "e.log"
    with running(
        Start((sys.executable, "-c", ENGINE, str(port)), cores=(0,)), f"http://127.0.0.1:{port}", log
    ) as pid:
        child = int(log.read_text(encoding="utf-8").split()[0])
        assert _alive(pid) and _alive(child)

    deadline = time.monotonic() + 10
    while _alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(child)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def test_an_engine_that_dies_names_its_log(tmp_path: Path) -> None:
    """The error says the code and where to look."""
    start = Start((sys.executable, "-c", "import sys; sys.exit(3)"))
    url = f"http://127.0.0.1:{_free_port()}"

    with (
        pytest.raises(EngineError, match=r"code 3.*e\.log"),
        running(start, url, tmp_path / "e.log"),
    ):
        pass


def test_an_engine_that_is_never_ready_is_ended(tmp_path: Path) -> None:
    """After the time given the start is an error."""
    start = Start((sys.executable, "-c", "import time; time.sleep(60)"), ready_s=0.3)
    url = f"http://127.0.0.1:{_free_port()}"

    with (
        pytest.raises(EngineError, match="did not answer 200"),
        running(start, url, tmp_path / "e"),
    ):
        pass


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    """Another engine on the port would be measured in this one's name."""
    port = _free_port()
    start = Start((sys.executable, "-c", ENGINE, str(port)))
    url = f"http://127.0.0.1:{port}"
    refused = pytest.raises(EngineError, match="answers there already")
    with (
        running(start, url, tmp_path / "a"),
        refused,
        running(start, url, tmp_path / "b"),
    ):
        pass
