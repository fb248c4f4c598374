"""The exporter over HTTP: token, limits, series, retrievals, windows."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from exporters.drift.config import load_config
from exporters.drift.profile import Profile, save
from exporters.drift.server import drift_app, prepare
from slo.signals import Drift

TOKEN = "0123456789abcdef-secret"
AUTH = {"Authorization": f"Bearer {TOKEN}"}
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Running:
    """A running exporter: base URLs and what it exposes."""

    def __init__(self, metrics: str, ingest: str, session: aiohttp.ClientSession) -> None:
        self.metrics, self.ingest, self.session = metrics, ingest, session

    async def post(self, path: str, **more: object) -> tuple[int, dict[str, object]]:
        """POST to the ingest port with the token, unless headers say otherwise."""
        more.setdefault("headers", AUTH)
        async with self.session.post(self.ingest + path, **more) as answer:  # type: ignore[arg-type] # passed on
            return answer.status, json.loads(await answer.text())

    async def series(self) -> Series:
        """Every sample of /metrics."""
        async with self.session.get(self.metrics + "/metrics") as answer:
            text = await answer.text()
        return {
            (s.name, frozenset(s.labels.items())): s.value
            for family in text_string_to_metric_families(text)
            for s in family.samples
        }


@pytest.fixture
async def running(tmp_path: Path, drift: Drift, profile: Profile) -> AsyncIterator[Running]:
    """An exporter with one reference, a token and bodies of at most 1 MB."""
    save(profile, tmp_path / "p.npz")
    (tmp_path / "token").write_text(TOKEN + "\n")
    (tmp_path / "drift.yml").write_text(
        "references: [{file: p.npz, model: embed-a, dimension: 24}]\n"
        "ingest: {listen: '127.0.0.1:0', token_file: token, max_body_bytes: 1000000}\n"
    )
    urls: dict[str, str] = {}
    quick = drift.model_copy(update={"every": 1})
    app = drift_app(prepare(load_config(tmp_path / "drift.yml"), tmp_path, quick), urls.__setitem__)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with aiohttp.ClientSession() as session:
        yield Running(f"http://127.0.0.1:{runner.addresses[0][1]}", urls["ingest"], session)
    await runner.cleanup()


def of(series: Series, name: str, **labels: str) -> float | None:
    """A sample by its name and some of its labels; None: there is none."""
    found = [v for (n, own), v in series.items() if n == name and labels.items() <= dict(own).items()]
    assert len(found) <= 1, f"{name} {labels} is not one series"
    return found[0] if found else None


async def test_without_the_token_nothing_is_taken(running: Running) -> None:
    """No token, a wrong one and Basic auth: 401 each, counted, and no stream."""
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic Zm9vOmJhcg=="}):
        status, answer = await running.post(
            "/v1/vectors", json={"model": "m", "vectors": [[1, 2]]}, headers=headers
        )
        assert status == 401
        assert "Authorization: Bearer" in str(answer["error"])
    series = await running.series()

    assert of(series, "llm_drift_unauthorised_requests_total") == 3
    assert of(series, "llm_drift_streams") == 0


async def test_a_token_of_any_bytes_is_refused_and_counted(running: Running) -> None:
    """What is no text in the header is one more wrong token, not a failure of the server's."""
    host, port = running.ingest.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /v1/vectors HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\xfe\r\n")
    writer.write(b"Content-Length: 2\r\nConnection: close\r\n\r\n{}")
    status = (await reader.read()).split(b"\r\n")[0]
    writer.close()

    assert status == b"HTTP/1.1 401 Unauthorized"
    assert of(await running.series(), "llm_drift_unauthorised_requests_total") == 1


@pytest.mark.parametrize(
    ("path", "body", "encoding"),
    [
        ("/v1/vectors", b"[" * 60_000, ""),
        ("/v1/retrievals", b"[" * 60_000, ""),
        ("/v1/traces", b"[" * 60_000, ""),
        ("/v1/retrievals", b'{"retrievals": [{"scores": [1' + b"0" * 400 + b"]}]}", ""),
        ("/v1/retrievals", b'{"retrievals": [{"scores": [1e308, 1e308]}]}', ""),
        ("/v1/retrievals", b'{"retrievals": [{"scores": [], "seconds": 1e308}]}', ""),
        ("/v1/vectors", b"no gzip", "gzip"),
    ],
)
async def test_hostile_bodies_are_the_senders_fault(
    running: Running, path: str, body: bytes, encoding: str
) -> None:
    """Nesting without end, numbers without bounds, a broken encoding: 400 and a reason; the exporter lives on."""
    headers = {**AUTH, "Content-Type": "application/json"}
    if encoding:
        headers["Content-Encoding"] = encoding
    status, answer = await running.post(path, data=body, headers=headers)

    assert status == 400
    assert answer["error"]
    assert of(await running.series(), "llm_drift_streams") == 0


async def test_half_a_surrogate_pair_in_a_name_leaves_the_page_whole(running: Running) -> None:
    """JSON can say it and no page can: as a model, a version or a tenant it is shown as a question mark."""
    vectors = b'{"model": "m\\ud800", "version": "\\udfff", "tenant": "\\ud83d", "vectors": [[1, 2]]}'
    retrieval = b'{"tenant": "\\udc00", "retrievals": [{"scores": [0.5]}]}'
    headers = {**AUTH, "Content-Type": "application/json"}
    assert (await running.post("/v1/vectors", data=vectors, headers=headers))[0] == 200
    assert (await running.post("/v1/retrievals", data=retrieval, headers=headers))[0] == 200
    series = await running.series()

    assert of(series, "llm_drift_window_vectors", model="m?", version="?", tenant="?") == 1
    assert of(series, "llm_retrievals_total", tenant="?", result="ok") == 1


async def test_vectors_are_judged_and_shown(running: Running, make: Callable[..., np.ndarray]) -> None:
    """A shifted stream: state yes, scores with thresholds and false-alarm rates, counts by reason from 0."""
    shifted = make(300, 5, shift=2.0).tolist()
    status, answer = await running.post(
        "/v1/vectors", json={"model": "embed-a", "vectors": [*shifted, [0.0] * 24]}
    )
    assert (status, answer) == (200, {"accepted": 300, "rejected": {"zero": 1}})
    one = {"model": "embed-a", "version": "", "tenant": ""}
    async with asyncio.timeout(60):  # judged beside the loop, so not yet when the answer comes
        while of(series := await running.series(), "llm_drift_state", **one, state="yes") != 1:
            await asyncio.sleep(0.05)

    assert of(series, "llm_drift_state", **one, state="yes") == 1
    assert of(series, "llm_drift_state", **one, state="no") == 0
    for name in ("score", "threshold", "false_alarm_ratio"):
        assert of(series, f"llm_drift_{name}", **one, detector="pca_ratio_change") is not None
        assert of(series, f"llm_drift_{name}", **one, detector="mmd") is not None
    assert of(series, "llm_drift_threshold", **one, detector="pca_ratio_change") == 0.15
    assert of(series, "llm_drift_window_vectors", **one) == 300
    assert of(series, "llm_drift_vectors_rejected_total", **one, source="post", reason="zero") == 1
    assert of(series, "llm_drift_vectors_rejected_total", **one, source="tap", reason="nan") == 0
    assert of(series, "llm_drift_reference_info", model="embed-a", dimension="24") == 1


async def test_too_few_vectors_have_a_state_and_no_score(
    running: Running, make: Callable[..., np.ndarray]
) -> None:
    """8 vectors: insufficient is 1, and no score is shown, not even 0."""
    await running.post("/v1/vectors", json={"model": "embed-a", "vectors": make(8, 1).tolist()})
    series = await running.series()

    assert of(series, "llm_drift_state", model="embed-a", state="insufficient") == 1
    assert [key for key in series if key[0] == "llm_drift_score"] == []


async def test_broken_vectors_leave_no_nan_on_the_page(
    running: Running, case: Callable[[str, str], Any]
) -> None:
    """A63 as a client posts it, NaN and Infinity as JSON has them not: two accepted, four reasons, no score, no NaN."""
    text = (
        json.dumps(case("A63", "vectors")["vectors"])
        .replace('"NaN"', "NaN")
        .replace('"Infinity"', "Infinity")
    )
    body = f'{{"model": "new", "vectors": {text}}}'
    status, answer = await running.post(
        "/v1/vectors", data=body, headers={**AUTH, "Content-Type": "application/json"}
    )
    series = await running.series()

    assert (status, answer["accepted"]) == (200, 2)
    for reason in ("zero", "nan", "inf", "empty"):
        assert of(series, "llm_drift_vectors_rejected_total", model="new", source="post", reason=reason) == 1
    assert [key for key in series if key[0] == "llm_drift_score"] == []
    assert not any(value != value for value in series.values())


async def test_a_window_is_given_out_as_npy(running: Running, make: Callable[..., np.ndarray]) -> None:
    """What `inferwatch drift fit` reads: the sample of one stream, behind the token."""
    vectors = make(50, 2)
    await running.post("/v1/vectors", json={"model": "m", "version": "2", "vectors": vectors.tolist()})
    async with running.session.get(running.ingest + "/v1/window?model=m&version=2", headers=AUTH) as answer:
        sample = np.load(io.BytesIO(await answer.read()))
    async with running.session.get(running.ingest + "/v1/window?model=x", headers=AUTH) as missing:
        assert missing.status == 404
        assert (await missing.json())["streams"] == [{"model": "m", "version": "2", "tenant": ""}]
    async with running.session.get(running.ingest + "/v1/window?model=m&version=2") as refused:
        assert refused.status == 401

    assert sorted(sample.tolist()) == sorted(vectors.tolist())


async def test_retrievals_by_what_they_found(running: Running) -> None:
    """One good, one under 0.3, one empty; durations and lengths where they are told."""
    found = [
        {"scores": [0.4, 0.8], "seconds": 0.2, "query_characters": 20},
        {"scores": [0.2, 0.1], "seconds": 0.7},
        {"scores": []},
    ]
    status, answer = await running.post("/v1/retrievals", json={"tenant": "t", "retrievals": found})
    series = await running.series()

    assert (status, answer) == (200, {"accepted": 3})
    assert [
        of(series, "llm_retrievals_total", tenant="t", result=r) for r in ("ok", "low_score", "empty")
    ] == [1, 1, 1]
    assert of(series, "llm_retrieval_duration_seconds_sum", tenant="t") == pytest.approx(0.9)
    assert of(series, "llm_retrieval_top_score_bucket", tenant="t", le="0.3") == 1  # 0.8 and 0.2
    assert of(series, "llm_retrieval_mean_score_bucket", tenant="t", le="0.2") == 1  # 0.6 and 0.15
    assert of(series, "llm_retrieval_query_characters_count", tenant="t") == 1


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/vectors", b"{", 400),
        ("/v1/vectors", b"x" * 2_000_000, 413),
        ("/v1/retrievals", b'{"retrievals": [{"scores": ["a"]}]}', 400),
        ("/v1/retrievals", b'{"retrievals": [{"scores": [NaN]}]}', 400),
        ("/v1/retrievals", b"[]", 400),
        ("/v1/traces", b"{", 400),
    ],
)
async def test_unreadable_bodies_are_answered_and_end_nothing(
    running: Running, path: str, body: bytes, status: int
) -> None:
    """The exporter goes on serving."""
    headers = {**AUTH, "Content-Type": "application/json"}
    async with running.session.post(running.ingest + path, data=io.BytesIO(body), headers=headers) as answer:
        assert answer.status == status
    assert of(await running.series(), "llm_drift_streams") == 0


async def test_counters_are_there_before_anything_came(running: Running) -> None:
    """Every drop reason and retrieval result stands at 0, and no stream is healthy by default."""
    series = await running.series()

    for reason in ("streams", "memory", "busy", "too_large", "undecodable"):
        assert of(series, "llm_drift_dropped_total", reason=reason) == 0
    assert of(series, "llm_retrievals_total", tenant="", result="empty") == 0
    assert [key for key in series if key[0] == "llm_drift_state"] == []
