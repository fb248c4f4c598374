"""Two ledgers of the same requests: the load client's records and the simulated engine's own counters."""

import re
import urllib.request
from pathlib import Path

import pytest

from loadtests.gatedemo import sim_engine
from loadtests.plan import open_loop, parse_plan
from loadtests.run import run_load

pytestmark = pytest.mark.integration


def _total(url: str, family: str) -> float:
    """The sum of a counter's series on the engine's /metrics page."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    return sum(
        float(value) for value in re.findall(rf"^{family}(?:\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE)
    )


def test_client_and_engine_count_the_same(tmp_path: Path) -> None:
    """Requests finished, prompt and output tokens: the deltas at the engine are exactly the sums of the records."""
    families = ("vllm:request_success_total", "vllm:prompt_tokens_total", "vllm:generation_tokens_total")
    with sim_engine() as engine:
        before = [_total(engine.url, family) for family in families]
        raw = {"base_url": engine.url, "model": "sim-llama", "arrival": open_loop(30, 4), "drain_s": 20}
        raw |= {
            "prompt_tokens": "uniform:5:60",
            "output_tokens": "uniform:1:9",
            "mix": {"chat": 1, "completions": 1},
        }
        result = run_load(parse_plan(raw), tmp_path)
        after = [_total(engine.url, family) for family in families]
    good = [record for record in result.records if record.outcome == "ok"]

    assert len(good) == len(result.records) > 0
    assert {record.tokens_source for record in good} == {"server"}
    assert [late - early for early, late in zip(before, after, strict=True)] == [
        len(good),
        sum(record.prompt_tokens or 0 for record in good),
        sum(record.output_tokens or 0 for record in good),
    ]
