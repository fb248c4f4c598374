"""Recorded pages become samples with their times and the labels that a scrape would have given them."""

import gzip
from pathlib import Path

import pytest

from inferwatch.stack.errors import StackError
from inferwatch.stack.recorded import openmetrics

PAGES = """\
# SCRAPE engine 1000.5
llm_requests_running{model="m",dp_rank="0"} 3
# HELP llm_probe_success left out
llm_probe_success 1

# SCRAPE node 1001.25
llm_gpu_up{gpu="0",} 1
llm_engine_core_seen{instance="127.0.0.1:8000",dp_rank="0"} 1
# SCRAPE engine 1005.5
llm_requests_running{model="m",dp_rank="0"} 4
"""


@pytest.mark.parametrize("name", ["pages.prom", "pages.prom.gz"])
def test_samples_get_their_time_and_target(tmp_path: Path, name: str) -> None:
    """Engine pages are one engine's, node pages the agent's; an instance that is there is kept."""
    file = tmp_path / name
    file.write_bytes(gzip.compress(PAGES.encode()) if name.endswith(".gz") else PAGES.encode())
    text, first, last = openmetrics(file)
    assert (first, last) == (1000.5, 1005.5)
    engine = 'service="recorded",instance="engine",job="llm-engine"'
    lines = text.splitlines()
    assert f'llm_requests_running{{model="m",dp_rank="0",{engine}}} 3 1000.500' in lines
    assert f'llm_requests_running{{model="m",dp_rank="0",{engine}}} 4 1005.500' in lines
    assert f"llm_probe_success{{{engine}}} 1 1000.500" in lines
    assert 'llm_gpu_up{gpu="0",job="node",instance="node"} 1 1001.250' in lines
    assert 'llm_engine_core_seen{instance="127.0.0.1:8000",dp_rank="0",job="node"} 1 1001.250' in lines
    assert lines[-1] == "# EOF"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("llm_up 1\n", "line 1 is neither"),
        ("", "holds no line"),
        ("# SCRAPE engine 1\nwhat?\n", "line 2 is neither"),
    ],
)
def test_what_is_no_recording_is_told(tmp_path: Path, text: str, said: str) -> None:
    """With the line, or what is missing."""
    (tmp_path / "x.prom").write_text(text, encoding="utf-8")
    with pytest.raises(StackError, match=said):
        openmetrics(tmp_path / "x.prom")
