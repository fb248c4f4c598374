"""Logs × burn: what Loki writes into Prometheus warns only while an error budget burns."""

import subprocess
from pathlib import Path

import yaml

from inferwatch.stack import binaries
from inferwatch.stack.progress import to_stderr
from inferwatch.stack.settings import default_settings

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy" / "loki" / "joined" / "engine-log.yaml"
RULER = ROOT / "deploy" / "loki" / "rules" / "fake" / "inferwatch.yaml"
ERRORS = 'inferwatch:engine_log_errors:rate5m{service_name="vllm"}'
BURN = 'slo:current_burn_rate:ratio{sloth_service="llm"}'


def case(errors: str, burn: str, fires: bool) -> dict[str, object]:
    """One promtool test: both series for five minutes, judged at the fourth."""
    alert = {
        "exp_labels": {"severity": "warning", "service_name": "vllm"},
        "exp_annotations": {
            "summary": "vllm logs errors of a dying engine while an error budget burns",
            "description": "0.2 lines/s over 5 m match; an error budget burns faster than it lasts. Open the lines "
            "in Loki, their trace ids in Jaeger.",
            "runbook_url": "docs/traces.md",
        },
    }
    series = [{"series": ERRORS, "values": errors}, {"series": BURN, "values": burn}]
    test = {
        "eval_time": "4m",
        "alertname": "EngineErrorsWhileBurning",
        "exp_alerts": [alert] if fires else [],
    }
    return {"interval": "30s", "input_series": series, "alert_rule_test": [test]}


def test_it_needs_both(tmp_path: Path) -> None:
    """Errors alone, burning alone and a budget that lasts (1) say nothing; both together warn after a minute."""
    tests = [
        case("0.2x10", "3x10", fires=True),
        case("0.2x10", "1x10", fires=False),
        case("0x10", "3x10", fires=False),
        case("_x10", "3x10", fires=False),
        case("0.2x10", "_x10", fires=False),
    ]
    file = tmp_path / "test.yaml"
    file.write_text(
        yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "30s", "tests": tests})
    )
    promtool = binaries.resolve("promtool", default_settings(), to_stderr()).path
    answer = subprocess.run(
        [str(promtool), "test", "rules", str(file)], capture_output=True, text=True, check=False
    )

    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_lokis_ruler_records_what_the_rule_reads() -> None:
    """The series of the ruler file is the one that Prometheus' rule joins."""
    (group,) = yaml.safe_load(RULER.read_text())["groups"]

    assert group["rules"][0]["record"] in RULES.read_text()
