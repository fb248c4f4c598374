"""The whole answer for one recording, byte for byte, and what Prometheus' own linter says of it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from exporters.engine.families import Family
from exporters.engine.labels import LabelCache
from exporters.engine.probe_error import ProbeError
from exporters.engine.render import EngineVersion, ProbeStats, render_probe, render_reading
from exporters.engine.translate import translate
from exporters.engine.vllm import ADAPTER

GOLDEN = Path(__file__).parents[2] / "golden" / "engine-probe-vllm-0.32.0.prom"
WHERE = os.pathsep.join((os.environ.get("PATH", ""), str(Path.home() / ".cache" / "inferwatch" / "bin")))


def answer(body):
    """The exporter's whole answer with a fixed duration."""
    reading = translate(body, ADAPTER, LabelCache(), "0.32.0", 20_000)
    stats = ProbeStats(0.0123, len(body), 200)
    return render_reading(reading, EngineVersion("0.32.0")) + render_probe(stats, reading, None)


def promtool():
    """Prometheus' own tool; without it nothing here is proved, so its absence fails."""
    found = shutil.which("promtool", path=WHERE)
    assert found, "promtool is neither on PATH nor in ~/.cache/inferwatch/bin; `make up` fetches it"
    return found


def lint(text):
    """What `promtool check metrics` says and its status."""
    done = subprocess.run(
        [promtool(), "check", "metrics"], input=text, capture_output=True, timeout=60, check=False
    )
    return done.returncode, (done.stdout + done.stderr).decode()


def test_the_answer_is_the_golden_one(capture):
    """A change of name, label, order, help or number shows here first."""
    assert answer(capture("vllm-0.32.0-cpu-overload_008")).decode() == GOLDEN.read_text()


@pytest.mark.parametrize(
    "name", ["vllm-0.32.0-cpu-overload_008", "vllm-0.32.0-cpu-metrics_dp2_after", "vllm-0.32.0-cpu-lora_002"]
)
def test_promtool_has_nothing_to_say(name, capture):
    """Names, types and help texts pass Prometheus' linter without a remark."""
    assert lint(answer(capture(name))) == (0, "")


def test_promtool_accepts_a_failed_probe():
    """The answer of a failed probe is a clean page too, whatever the detail holds."""
    error = ProbeError("malformed", 'line\nbreak "quotes" \x00 \ud800 and é')
    text = render_probe(ProbeStats(1.0, 0, None), None, error)
    assert lint(text) == (0, "")
    assert text.count(b"# probe failed") == 1


def test_a_family_states_itself_once():
    """HELP, then TYPE."""
    assert Family("a_total", "counter", "Help.").header == b"# HELP a_total Help.\n# TYPE a_total counter\n"
