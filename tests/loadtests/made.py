"""Records and runs made by hand, for gates to judge."""

import dataclasses
from pathlib import Path
from typing import Any

from loadtests import identity
from loadtests.gates import judge
from loadtests.plan import Arrival, closed, open_loop, parse_plan
from loadtests.records import RequestRecord, from_mapping
from loadtests.run import LoadResult
from loadtests.verdict import Verdict
from slo import spec as slo_spec

SPEC = slo_spec.load()
CALM = ({"cpu_ratio": 0.2, "lag_s": [0.001] * 20, "seconds": 1.0},)


def record(at: float, ttft: float = 0.1, **changes: Any) -> RequestRecord:
    """Sent at *at*, first token after *ttft* seconds, ten tokens in ten chunks to 0.9 s."""
    values: dict[str, Any] = {field.name: None for field in dataclasses.fields(RequestRecord)}
    values |= {"worker": 0, "seq": 0, "attempt": 0, "endpoint": "chat", "stream": True, "trace_id": "t"}
    values |= {
        "scheduled_s": at,
        "started_s": at,
        "sent_s": at,
        "first_byte_s": at,
        "first_token_s": at + ttft,
    }
    values |= {"last_token_s": at + 0.9, "end_s": at + 0.9, "wall_offset_s": 0.0, "clock": "kernel"}
    values |= {"outcome": "ok", "done_seen": True, "will_retry": False, "output_tokens": 10, "chunks": 10}
    values |= {"tokens_source": "server", "bytes_in": 1, "chunk_gaps_ns": (int((0.9 - ttft) / 9 * 1e9),) * 9}
    return from_mapping({**values, **changes})


def run(
    folder: Path,
    records: list[RequestRecord],
    arrival: Arrival,
    *,
    seed: int = 0,
    health: Any = CALM,
    **known: Any,
) -> LoadResult:
    """A run of these records; *known* is its identity."""
    plan = parse_plan({"base_url": "http://h:1", "model": "m", "arrival": arrival, "random_seed": seed})
    identity.save({"engine": "vllm", "engine_version": "1", "model": "m", "flags": {}, **known}, folder)
    result = LoadResult(folder, plan, 100.0 * seed, 100.0 * seed + 9, 0, False)
    result.__dict__.update(records=tuple(records), health=health)
    return result


def steady(folder: Path, records: list[RequestRecord], **kwargs: Any) -> LoadResult:
    """An open loop of ten seconds at just their rate."""
    return run(folder, records, open_loop(len(records) / 10, 10), **kwargs)


def swing(folder: Path, speed: float, number: int, **kwargs: Any) -> LoadResult:
    """A closed loop that makes about 1000·*speed* tokens a second for 20 s."""
    count = int(2000 * speed)
    return run(folder, [record(20 * i / count) for i in range(count)], closed(90, 20), seed=number, **kwargs)


def pairs(tmp_path: Path, speeds: list[float], **kwargs: Any) -> Verdict:
    """Rounds at these speeds, judged against as many at speed 1."""
    runs = [swing(tmp_path / f"c{i}", speed, i, **kwargs) for i, speed in enumerate(speeds)]
    base = [swing(tmp_path / f"b{i}", 1.0, i) for i in range(len(speeds))]
    return judge(runs, base, SPEC)
