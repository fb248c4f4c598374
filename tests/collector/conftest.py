"""Settings in a temporary folder for the collector's tests."""

from pathlib import Path

import pytest

from inferwatch.stack.settings import Settings

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """This checkout, with run folder and cache in a temporary one."""
    return Settings(
        root=ROOT, run_dir=tmp_path / "run", cache_dir=tmp_path / "cache", spec_path=ROOT / "slo.yaml"
    )
