"""The engine benchmark measures what it says: both ways publish the same, and the exporter is a real process."""

import gzip
import json

import pytest

from inferwatch.bench import engine


def test_both_ways_publish_the_same_samples_before_they_are_timed(monkeypatch):
    """237 samples of 22 families from either; a difference ends the benchmark."""
    body = gzip.decompress(engine.CAPTURE.read_bytes())
    assert len(body) == 57517
    result = engine.cpu(body, rounds=1)
    assert result["samples_both"] == 237
    assert result["cpu_ms_inferwatch"] > 0
    assert result["cpu_ratio_vs_prometheus_client"] > 0
    monkeypatch.setattr(engine, "_theirs", lambda page: b"llm_requests_running 1\n")
    with pytest.raises(engine.BenchError, match="different samples"):
        engine.cpu(body, rounds=1)


async def test_memory_is_that_of_a_process_that_probed_every_target():
    """Three engines of their own, probed twice by a real exporter; peak and idle come from the system."""
    body = gzip.decompress(engine.CAPTURE.read_bytes())
    result = await engine.memory(body, targets=3, rounds=2)
    assert result["rss_mb_idle"] > 10
    assert result["rss_mb_over_idle_3_targets"] >= 0
    assert result["probe_rounds"] == 2
    json.dumps(result)
