"""The analysis exporter's queries on a real Prometheus that holds two known loads."""

from pathlib import Path

import pytest

from exporters.analysis.findings import find
from exporters.analysis.history import read
from inferwatch.promapi import Prometheus
from inferwatch.stack.progress import to_stderr
from inferwatch.stack.recorded import prometheus_of
from inferwatch.stack.settings import default_settings
from slo import spec

pytestmark = pytest.mark.integration

BEGAN = 1_790_000_040  # a whole minute
EVERY = 15
MINUTES = 20


def scrape(at: int) -> str:
    """
    Twenty minutes of one engine, a scrape every 15 s.

    First ten: 5 running, 3 requests a second, none bad. Second ten: 20 running, 12 a second, 5 % bad of a
    promise of 99 %. Prompts are of 300 tokens throughout; 6 of 10 prompt tokens were cached.
    """
    seconds = at - BEGAN
    busy = seconds >= 600
    running, rate, bad = (20, 12, 0.6) if busy else (5, 3, 0)
    requests = 3 * min(seconds, 600) + 12 * max(seconds - 600, 0)
    slo = 'sloth_id="llm-r",sloth_service="llm",sloth_slo="r"'
    return "\n".join(
        [
            f"# SCRAPE engine {at}",
            f'llm_requests_running{{model="m",dp_rank="0"}} {running}',
            f'inferwatch:instance_requests:rate{{model="m"}} {rate}',
            f'slo:sli_bad_events:avg1m{{model="m",{slo}}} {bad}',
            f'slo:sli_total_events:avg1m{{model="m",{slo}}} {rate}',
            f"slo:error_budget:ratio{{{slo}}} 0.01",
            f'llm_request_prompt_tokens_sum{{model="m",dp_rank="0"}} {300 * requests}',
            f'llm_request_prompt_tokens_count{{model="m",dp_rank="0"}} {requests}',
            f'llm_prefix_cache_queried_tokens_total{{model="m",dp_rank="0"}} {300 * requests}',
            f'llm_prefix_cache_hit_tokens_total{{model="m",dp_rank="0"}} {180 * requests}',
            'inferwatch:latency_seconds:quantile5m{model="m",sli="request_duration",quantile="0.95"} 1.2',
        ]
    )


def test_the_region_is_where_the_promise_was_kept(tmp_path: Path) -> None:
    """Nine whole minutes at batch 4 to 8 and 2 to 4 requests a second are good: the limit to set is 8."""
    file = tmp_path / "pages.prom"
    times = range(BEGAN, BEGAN + MINUTES * 60 + 1, EVERY)
    file.write_text("\n".join(scrape(at) for at in times) + "\n", encoding="utf-8")
    config = spec.load().analysis
    end = BEGAN + MINUTES * 60
    with prometheus_of(file, default_settings(), to_stderr()) as recorded, Prometheus(recorded.url) as client:
        moments = read(client, end=end, lookback_seconds=1200, window_seconds=60)
    assert list(moments) == [("recorded", "m")]
    found = moments["recorded", "m"]
    assert len(found) == 20
    quiet, loud = found[0], found[-1]
    assert (quiet.batch_requests, quiet.requests_per_second, quiet.kept) == (5, 3, True)
    assert (loud.batch_requests, loud.requests_per_second, loud.kept) == (20, 12, False)
    assert quiet.prompt_tokens == pytest.approx(300)
    assert quiet.cache_hit_ratio == pytest.approx(0.6)
    assert quiet.latency_seconds == 1.2
    region = find(found, config).region
    assert region is not None
    grid = find(found, config).grids["batch_rate"]
    (cell,) = region.cells
    assert (grid.x_bounds[cell[0]], grid.y_bounds[cell[1]], grid.y_bounds[cell[1] + 1]) == (2, 4, 8)
    # The tenth window ends where the load changes: its last sample is already of the second load.
    assert region.windows == 9
