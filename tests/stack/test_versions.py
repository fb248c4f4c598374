"""Pins come from .env, and every place that repeats one agrees with it."""

import re
from pathlib import Path

import pytest

from inferwatch.stack import sentence_model, versions
from inferwatch.stack.errors import StackError

ROOT = Path(__file__).resolve().parents[2]


def test_pins_are_read_and_other_lines_left(tmp_path: Path) -> None:
    """Only NAME_VERSION lines are pins; comments and other settings are not."""
    file = tmp_path / ".env"
    file.write_text(
        "# OLD_VERSION=1\nPROMETHEUS_VERSION=3.14.0\nCOMPOSE_PROFILES=cpu\n\nVLLM_CPU_VERSION=0.32.0\n"
    )

    assert dict(versions.load(file).versions) == {"prometheus": "3.14.0", "vllm_cpu": "0.32.0"}


def test_a_malformed_pin_names_its_line(tmp_path: Path) -> None:
    """A pin with quotes or spaces is refused with file, line and mend."""
    file = tmp_path / ".env"
    file.write_text('A_VERSION=1\nPROMETHEUS_VERSION = "3.14.0"\n')

    with pytest.raises(StackError, match=r"\.env:2: .*no spaces or quotes"):
        versions.load(file)


def test_a_missing_pin_and_a_missing_file_are_named(tmp_path: Path) -> None:
    """What is not pinned is an error, never a guess."""
    file = tmp_path / ".env"
    with pytest.raises(StackError, match=r"\.env: cannot be read"):
        versions.load(file)
    file.write_text("")
    with pytest.raises(StackError, match="no GRAFANA_VERSION; add it"):
        versions.load(file).of("grafana")


@pytest.mark.parametrize(
    ("found", "acceptable"),
    [
        ("3.14.0", True),
        ("3.14.2", True),
        ("3.15.0-rc.0", True),
        ("3.13.9", False),
        ("2.42.0+ds", False),
        ("4.0.0", False),
        ("", False),
        ("unknown", False),
    ],
)
def test_a_stand_in_has_the_same_major_and_is_no_older(found: str, acceptable: bool) -> None:
    """3.14.0 is pinned: newer 3.x may stand in, older and other majors may not."""
    assert versions.is_acceptable(found, "3.14.0") is acceptable


def test_the_wrapper_modules_build_what_is_pinned() -> None:
    """go.mod of each wrapper names the pinned release: v3.14.0 is published as module v0.314.0."""
    pins = versions.load(ROOT / ".env")
    build = ROOT / "inferwatch" / "stack" / "build"
    prometheus = re.search(
        r"github.com/prometheus/prometheus v(\S+)", (build / "prometheus/go.mod").read_text()
    )
    alertmanager = re.search(
        r"github.com/prometheus/alertmanager v(\S+)", (build / "alertmanager/go.mod").read_text()
    )
    assert prometheus is not None
    assert alertmanager is not None

    major, minor, patch = pins.of("prometheus").split(".")
    assert prometheus[1] == f"0.{int(major) * 100 + int(minor)}.{patch}"
    assert alertmanager[1] == pins.of("alertmanager")


def test_the_collector_and_jaeger_are_built_at_their_pins() -> None:
    """Every module of the collector is at one release; Jaeger's image v2.13.0 and module v1.76.0 are one release."""
    pins = versions.load(ROOT / ".env")
    builder = (ROOT / "otel-collector" / "builder.yaml").read_text()
    modules = re.findall(r"gomod: \S+ v(\S+)", builder)
    jaeger = re.search(
        r"github.com/jaegertracing/jaeger v(\S+)",
        (ROOT / "inferwatch/stack/build/jaeger/go.mod").read_text(),
    )
    assert jaeger is not None

    assert len(modules) >= 19
    assert set(modules) == {pins.of("otelcol")}
    assert f"  version: {pins.of('otelcol')}\n" in builder
    major, minor, patch = pins.of("jaeger").split(".")
    assert jaeger[1] == f"{int(major) - 1}.{int(minor) + 63}.{patch}"


def test_the_image_installs_the_sentence_model_that_the_launcher_fetches() -> None:
    """One pin in two places."""
    assert f"--no-deps {sentence_model.PACKAGE}\n" in (ROOT / "deploy" / "Dockerfile").read_text()


def test_the_requirements_pin_the_pinned_vllm() -> None:
    """vLLM's requirements name the version in .env and nothing unpinned."""
    pins = versions.load(ROOT / ".env")
    lines = (ROOT / "inferwatch/stack/vllm-cpu-requirements.txt").read_text().splitlines()
    packages = [line for line in lines if not line.startswith("#")]

    assert f"vllm-cpu=={pins.of('vllm_cpu')}" in packages
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.+]+", line) for line in packages)
