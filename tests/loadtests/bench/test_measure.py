"""The truthful server and what is made of its log; no speed is asserted."""

import http.client
import json
import socket
import ssl
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from loadtests.bench import measure
from loadtests.bench.measure import compare, exacter
from loadtests.bench.mock import BenchError, Sent, Truth, build, certificate, serving
from loadtests.bench.tools import Load, Said, installed, vllm_bench


def _post(url: str, tokens: int, name: str, tls: ssl.SSLContext | None = None) -> str:
    request = urllib.request.Request(
        f"{url}/v1/chat/completions", json.dumps({"max_tokens": tokens}).encode()
    )
    request.add_header("X-Request-Id", name)
    with urllib.request.urlopen(request, timeout=10, context=tls) as answer:
        return str(answer.read().decode())


def test_the_server_streams_and_logs_what_it_sent(tmp_path: Path) -> None:
    """Three chunks 2 ms apart, the first after 5 ms, under the client's id, by the server's own clock."""
    binary = build(tmp_path)
    with serving(binary, 0.005, 0.002, 0) as truth:
        body = _post(truth.url, 3, "abc")
        _post(truth.url, 1, "def")
    sent = truth.requests["abc"]

    assert body.count('"content":" tok"') == 3
    assert '"completion_tokens":3' in body
    assert body.endswith("data: [DONE]\n\n")
    assert set(truth.requests) == {"abc", "def"}
    assert len(sent.sent_ns) == 3
    assert sent.ttft_s >= 0.005
    assert all(gap > 0 for gap in sent.gaps_s)
    assert truth.cpu_s > 0


def test_the_server_speaks_tls_and_logs_the_same(tmp_path: Path) -> None:
    """Three chunks over a verified connection, whole; who does not trust the certificate gets nothing."""
    with serving(build(tmp_path, tls=True), 0.005, 0.002, 0, certificate(tmp_path)) as truth:
        trusting = ssl.create_default_context(cafile=str(truth.certificate))
        body = _post(truth.url, 3, "abc", trusting)
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            _post(truth.url, 3, "def", ssl.create_default_context())

    assert truth.url.startswith("https://")
    assert body.count('"content":" tok"') == 3
    assert body.endswith("data: [DONE]\n\n")
    assert list(truth.requests) == ["abc"]


def test_a_client_that_vanishes_ends_no_other_ones_tls(tmp_path: Path) -> None:
    """One connection ends without a word, as killed clients do; another, idle meanwhile, is answered."""
    with serving(build(tmp_path, tls=True), 0.005, 0.002, 0, certificate(tmp_path)) as truth:
        trusting = ssl.create_default_context(cafile=str(truth.certificate))
        address = ("127.0.0.1", urlsplit(truth.url).port)
        vanishing, staying = (
            http.client.HTTPSConnection(*address, timeout=10, context=trusting) for _ in range(2)
        )
        for one in (staying, vanishing):
            one.request("GET", "/v1/models")
            assert one.getresponse().read()
        vanishing.sock.shutdown(socket.SHUT_RDWR)
        vanishing.close()
        time.sleep(0.1)  # the server reads its end before the other one's request
        staying.request("POST", "/v1/completions", '{"max_tokens": 2}')
        answer = staying.getresponse().read()
        staying.close()

    assert answer.endswith(b"data: [DONE]\n\n")


def test_matched_errors_by_hand() -> None:
    """True TTFT 10 ms reported as 12: 2 ms off; true gap 5 ms reported as 5.5: 500 µs off; 2 requests in 0.5 s."""
    truth = Truth(
        "", None, {"a": Sent(0, (10_000_000, 15_000_000)), "b": Sent(0, (400_000_000, 500_000_000))}, 0.1
    )
    said = Said([0.012], [0.0055], None, {"a": (0.012, [0.0055])}, failed=1, cpu_s=0.004)
    figures = compare(said, truth)

    assert figures["ttft_bias_ms"]["p50"] == pytest.approx(2.0)
    assert figures["gap_error_us"]["p99"] == pytest.approx(500)
    assert (figures["requests_per_s"], figures["chunks_per_s"]) == (pytest.approx(4), pytest.approx(8))
    assert (figures["cpu_ms_per_request"], figures["failed"], figures["matched"]) == (
        pytest.approx(2),
        1,
        True,
    )


def test_unmatched_errors_compare_percentiles() -> None:
    """A client without ids: its median against the true median; one that keeps no gaps has no gap error."""
    truth = Truth("", None, {str(n): Sent(0, (10_000_000, 20_000_000)) for n in range(3)})
    figures = compare(Said([0.011, 0.011, 0.013], []), truth)

    assert figures["ttft_bias_ms"] == {"p50": pytest.approx(1.0), "p99": pytest.approx(3.0)}
    assert figures["gap_error_us"] is None


def test_who_is_more_exact_by_hand() -> None:
    """A bias of -0.3 ms is smaller than one of 0.5; what a peer does not tell is not compared."""
    ours = {"ttft_bias_ms": {"p50": 0.5, "p99": 1.0}, "gap_error_us": {"p50": 1.0, "p99": 9.0}}
    theirs = {"ttft_bias_ms": {"p50": -0.3, "p99": 2.0}, "gap_error_us": None}

    assert exacter(ours, theirs) == {
        "ours_and_theirs": {"ttft_bias_ms p50": (0.5, -0.3), "ttft_bias_ms p99": (1.0, 2.0)},
        "theirs_is_smaller": ["ttft_bias_ms p50"],
    }


def test_a_rate_that_cannot_be_measured_loses_no_other_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After all clients were measured, ours fails at a peer's rate: the line says why, and the run goes on."""

    def refused(*_: object) -> dict[str, Any]:
        raise BenchError("no request was answered")

    monkeypatch.setattr(measure, "_measure", refused)
    clients = {
        "inferwatch": {"open_loop": {"50%": {"rate": 9.0}}},
        "peer": {"open_loop": {"50%": {"rate": 7.0}}},
    }

    assert measure._at_the_same_rates(clients, tmp_path, tmp_path) == [
        {"peer": "peer", "rate": 7.0, "error": "no request was answered"}
    ]


def test_nothing_measured_is_an_error() -> None:
    """A client that got no answer has no figures."""
    with pytest.raises(BenchError, match="no request"):
        compare(Said(), Truth(""))


def test_peers_need_their_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without one only ours is measured; a wrong one is named."""
    for name in ("VLLM", "AIPERF", "GUIDELLM"):
        monkeypatch.delenv(f"INFERWATCH_BENCH_{name}", raising=False)
    assert installed() == ["inferwatch"]
    monkeypatch.setenv("INFERWATCH_BENCH_VLLM", "/none")
    assert installed() == ["inferwatch", "vllm"]
    with pytest.raises(BenchError, match="INFERWATCH_BENCH_VLLM='/none'"):
        vllm_bench(Load(16, 1, users=1), Truth("http://127.0.0.1:1"), tmp_path, 0)
