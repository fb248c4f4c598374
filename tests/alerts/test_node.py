"""What the node's rules and the agent must agree on, and that the rules read only what somebody exposes."""

import re
from pathlib import Path

import yaml

import slo.spec
from alerts.expressions import metric_names
from alerts.node import node_groups
from alerts.node_records import gpu_records
from alerts.registry import all_groups
from alerts.rule import Record
from exporters.node.families import FAMILIES
from slo.names import engine

ROOT = Path(__file__).resolve().parents[2]
SPEC = slo.spec.load()
# Other people's names: dcgm-exporter's default and opt-in counters, nvidia_gpu_exporter's families.
FOREIGN = re.compile(r"^(DCGM_FI_(DEV|PROF)_[A-Z0-9_]+|nvidia_smi_[a-z0-9_]+|up)$")


def test_a_fault_is_hardware_or_application_whoever_tells_of_it() -> None:
    """The same codes for dcgm-exporter and nvidia_gpu_exporter as in the agent's classes."""
    (xids, _) = (r for r in gpu_records(SPEC) if r.name == "inferwatch:gpu_xids:increase")

    assert 'class=~"memory|link|lost|firmware|power"' in xids.expr
    codes = {int(code) for code in re.findall(r"DCGM_FI_DEV_XID_ERRORS == (\d+)", xids.expr)}
    pattern = re.search(r'xid=~"([\d|]+)"', xids.expr)
    assert pattern is not None
    assert codes == {int(code) for code in pattern[1].split("|")}
    assert {48, 63, 64, 74, 79, 94, 95, 119, 120} <= codes
    assert codes.isdisjoint({13, 31, 43, 45})


def test_rules_read_only_what_somebody_exposes() -> None:
    """The agent's families, the engine exporter's, our own records, or another exporter's names."""
    rules = [rule for group in node_groups(SPEC) for rule in group.rules]
    recorded = [rule for group in all_groups(SPEC) for rule in group.rules if isinstance(rule, Record)]
    own = {family.name for family in FAMILIES} | {rule.name for rule in recorded}
    engines = {v for v in vars(engine).values() if isinstance(v, str)}
    engines |= {f"{name}{part}" for name in engines for part in ("_bucket", "_count")}

    unknown = {
        name
        for rule in rules
        for name in metric_names(rule.expr)
        if name not in own | engines and not FOREIGN.match(name)
    }

    assert unknown == set()


def test_the_recorded_run_is_tested_as_it_was_recorded() -> None:
    """tests/alerts/node-h200.promtool.yaml holds 55 samples, as many as were scraped."""
    text = (ROOT / "tests" / "alerts" / "node-h200.promtool.yaml").read_text(encoding="utf-8")
    (test,) = yaml.safe_load(text)["tests"]
    values = {entry["series"].partition("{")[0]: entry["values"] for entry in test["input_series"]}

    assert len(values["llm_requests_waiting"].split()) == 55
    assert values["llm_requests_waiting"].split()[40] == "140.0"
    assert values["llm_engine_gpu_info"].split()[1:3] == ["1", "1"]
