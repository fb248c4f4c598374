"""The rules under the pinned promtool and the distribution's old one, and the throughput floor on a spec with GPUs."""

import subprocess
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from alerts.registry import service_groups
from alerts.rule import rule_file
from alerts.scope import Scope
from inferwatch.stack import binaries
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import default_settings
from slo import spec as slo_spec

ROOT = Path(__file__).resolve().parents[2]
TESTS = sorted((ROOT / "tests" / "alerts").glob("*.promtool.yaml"))
pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture(scope="module", params=["pinned", "distribution"])
def promtool(request: pytest.FixtureRequest) -> Path:
    """promtool of the pinned Prometheus 3, and of Prometheus 2 as Debian has it."""
    find = binaries.resolve if request.param == "pinned" else binaries.from_distribution
    return find("promtool", default_settings(), Reporter(Console(stderr=True))).path


def ran(promtool: Path, *words: str) -> str:
    """What promtool says; fails the test when it is not content."""
    answer = subprocess.run([str(promtool), *words], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def test_the_two_promtools_are_two(promtool: Path) -> None:
    """2.42, the oldest that is promised, as Debian 12 has it, and 3: the same binary twice would prove nothing."""
    pinned = binaries.resolve("promtool", default_settings(), Reporter(Console(stderr=True)))
    old = binaries.from_distribution("promtool", default_settings(), Reporter(Console(stderr=True)))

    assert pinned.version.startswith("3.")
    assert old.version.startswith("2.42."), (
        f"run on Debian 12, as .github/workflows/ci.yml does: {old.version}"
    )
    assert promtool in (pinned.path, old.path)


def test_every_rule_file_is_accepted_without_a_lint(promtool: Path) -> None:
    """No duplicate rule, no unknown field, no expression that does not parse."""
    files = sorted(map(str, (ROOT / "alerts" / "rules").glob("*.yaml")))

    assert "FAILED" not in ran(promtool, "check", "rules", "--lint-fatal", *files)


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name.removesuffix(".promtool.yaml"))
def test_expected_values_hold(promtool: Path, path: Path) -> None:
    """Values and alerts that were worked out by hand."""
    assert "SUCCESS" in ran(promtool, "test", "rules", str(path))


def test_the_throughput_floor_is_judged_only_while_requests_wait(promtool: Path, tmp_path: Path) -> None:
    """2 x 1200 tokens a second: 2000 with a queue is a ticket after 2m, 2500 is not, idle is not."""
    raw = yaml.safe_load(slo_spec.DEFAULT_PATH.read_text(encoding="utf-8"))
    raw["services"][0]["throughput_floor"].update(gpus=2, gpu_model="NVIDIA A100-SXM4-80GB")
    spec = slo_spec.parse(raw)
    groups = service_groups(Scope(spec, spec.services[0]))
    (tmp_path / "rules.yaml").write_text(rule_file((groups[-1],)), encoding="utf-8")
    target = 'job="llm-engine",service="llm",instance="a:1",model="m",dp_rank="0"'

    def case(tokens_per_scrape: int, waiting: int, firing_at: list[str], silent_at: list[str]) -> object:
        fired = {
            "labels": 'ALERTS{alertname="ThroughputLow",alertstate="firing",severity="ticket",service="llm"}'
        }
        firing = 'ALERTS{alertname="ThroughputLow",alertstate="firing"}'
        return {
            "interval": "15s",
            "input_series": [
                {"series": f"llm_generation_tokens_total{{{target}}}", "values": f"0+{tokens_per_scrape}x60"},
                {"series": f"llm_requests_waiting{{{target}}}", "values": f"{waiting}x60"},
            ],
            "promql_expr_test": [
                *(
                    {"expr": firing, "eval_time": at, "exp_samples": [fired | {"value": 1}]}
                    for at in firing_at
                ),
                *({"expr": firing, "eval_time": at, "exp_samples": []} for at in silent_at),
            ],
        }

    tests = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "30s",
        "tests": [
            case(30_000, 5, ["600s"], ["90s"]),  # 2000 a second
            case(37_500, 5, [], ["600s"]),  # 2500 a second
            case(0, 0, [], ["600s"]),  # idle
        ],
    }
    path = tmp_path / "floor.promtool.yaml"
    path.write_text(yaml.safe_dump(tests), encoding="utf-8")

    assert "SUCCESS" in ran(promtool, "test", "rules", str(path))
