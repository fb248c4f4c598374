"""The logging configuration that an engine is given: its lines reach the collector, cleaned."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from . import otlp

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import json, logging, logging.config, sys
config = json.load(open(sys.argv[1]))
config["formatters"]["vllm"] = {"format": "%(message)s"}  # vLLM's own class is not installed here
logging.config.dictConfig(config)
log = logging.getLogger("vllm.v1.engine")
log.info("Received request cmpl-1: prompt: 'my mother', params: SamplingParams(n=1)")
log.error("EngineDeadError: engine core died")
"""


def test_an_engines_lines_arrive_without_what_users_asked(tmp_path: Path) -> None:
    """Two lines on the console are two records; the error is counted, and the quoted prompt is not there."""
    with otlp.collector(tmp_path) as collector:
        env = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "deploy" / "logs"),
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.http}",
            "OTEL_SERVICE_NAME": "vllm",
        }
        words = [sys.executable, "-c", PROGRAM, str(ROOT / "deploy" / "logs" / "vllm.json")]
        answer = subprocess.run(words, env=env, capture_output=True, text=True, check=True, timeout=60)
        otlp.until(
            lambda: collector.sample("llm_log_errors_total", service_name="vllm") == 1, 20, "one error"
        )
        otlp.until(lambda: (tmp_path / "logs.jsonl").is_file(), 20, "logs were written")
        line = json.loads((tmp_path / "logs.jsonl").read_text().splitlines()[0])
        said = collector.said()

    assert "my mother" in answer.stdout
    assert "my mother" not in said
    records = line["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert [record["body"]["stringValue"] for record in records] == [
        "Received request cmpl-1: prompt: withheld",
        "EngineDeadError: engine core died",
    ]
