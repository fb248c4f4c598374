"""The exporter behind HTTP: ready after a good reading, counting those that failed, errors in words."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from exporters.analysis import server
from exporters.analysis.series import State
from inferwatch.promapi import PromError, Sample, Series
from slo.spec import load

CONFIG = load()


class Prometheus:
    """Gives one engine's windows, or fails."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    def query_range(self, expr: str, *, start: float, end: float, step_seconds: float) -> list[Series]:
        """The same number for every query and window."""
        del start, step_seconds
        if self.fails:
            raise PromError("gone")
        return [Series({"service": "llm", "model": "m"}, ((end, 0.0 if "bad_events" in expr else 0.5),))]

    def query(self, expr: str, *, at: float) -> list[Sample]:
        """300 requests of one embedding version, all between 0.05 and 0.1 s; it is in use."""
        who = {"service": "rag", "stage": "embedding", "version": "v1"}
        if "le)" not in expr:
            return [Sample(who, at, 1.0)]
        return [
            Sample({**who, "le": le}, at, n) for le, n in (("0.05", 0.0), ("0.1", 300.0), ("+Inf", 300.0))
        ]


async def test_it_serves_what_it_read() -> None:
    """One window: batch 0.5, rate 0.5, kept."""
    told: Any = Prometheus()
    async with TestClient(TestServer(server.analysis_app(told, CONFIG))) as client:
        for _ in range(100):
            if (await client.get("/-/ready")).status == 200:
                break
            await asyncio.sleep(0.02)
        text = await (await client.get("/metrics")).text()
    assert 'llm_analysis_windows{grid="batch_rate",model="m",service="llm",x="0.5",y="0"} 1.0' in text
    assert 'llm_analysis_windows_kept{grid="batch_rate",model="m",service="llm",x="0.5",y="0"} 1.0' in text
    assert 'llm_analysis_version_requests{service="rag",stage="embedding",version="v1"} 300.0' in text
    assert 'llm_analysis_version_in_use{service="rag",stage="embedding",version="v1"} 1.0' in text
    # 0.05 + 0.95 x 0.05
    assert 'bound="estimate",service="rag",stage="embedding",version="v1"} 0.0975' in text


def test_a_reading_that_fails_is_counted_and_the_last_kept() -> None:
    """Known at 100 s, Prometheus gone at 160 s."""
    state, good, gone = State(), Prometheus(), Prometheus(fails=True)
    server.read_once(state, good, CONFIG, 100.0)  # type: ignore[arg-type] # only query and query_range
    server.read_once(state, gone, CONFIG, 160.0)  # type: ignore[arg-type] # only query and query_range
    assert (state.made_at, state.errors, list(state.findings)) == (100.0, 1, [("llm", "m")])


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--prometheus", "localhost:9090"], "not an http(s) URL"),
        (["--prometheus", "http://127.0.0.1:1", "--listen", "9484"], "not HOST:PORT"),
        (["--prometheus", "http://127.0.0.1:1", "--spec", "/nonexistent.yaml"], "cannot be read"),
    ],
)
def test_a_command_line_that_cannot_be_used(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Exit 2 and one line that says what to write."""
    del tmp_path
    assert server.main(argv) == 2
    assert said in capsys.readouterr().err
