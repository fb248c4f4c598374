"""slo.yaml -> the files under alerts/rules and alerts/alertmanager, or the list of those that are stale."""

from functools import partial
from itertools import groupby
from pathlib import Path

from alerts.alertmanager.config import render as alertmanager_config
from alerts.direct import direct_groups
from alerts.drift import drift_groups
from alerts.listing import alert_list
from alerts.node import node_groups
from alerts.rag import rag_groups
from alerts.registry import service_groups, stack_groups
from alerts.rule import Group, rule_file
from alerts.scope import Scope
from slo import spec as slo_spec
from slo.spec import Spec

ROOT = Path(__file__).resolve().parent.parent
RULES = "alerts/rules"


def files(spec: Spec) -> dict[str, str]:
    """Return every generated file: path from the repository's root -> text."""
    services = {
        f"{RULES}/service-{service.id}-{part}.yaml": rule_file(tuple(groups))
        for service in spec.services
        for part, groups in groupby(service_groups(Scope(spec, service)), partial(_part, service.id))
    }
    drift = {
        f"{RULES}/drift-{service.id}.yaml": rule_file(drift_groups(Scope(spec, service)))
        for service in spec.services
    }
    return (
        services
        | drift
        | {
            f"{RULES}/node.yaml": rule_file(node_groups(spec)),
            f"{RULES}/rag.yaml": rule_file(rag_groups(spec)),
            f"{RULES}/stack.yaml": rule_file(stack_groups(spec)),
            f"{RULES}/direct-vllm.yaml": rule_file(direct_groups(spec)),
            "alerts/alertmanager/alertmanager.yml": alertmanager_config(spec),
            "docs/alerts.md": alert_list(spec),
        }
    )


def _part(service: str, group: Group) -> str:
    """`llm-bounds-request_queue` -> `bounds`: the groups of one part stand in one file."""
    return group.name.removeprefix(f"{service}-").partition("-")[0]


def write(check: bool, root: Path = ROOT, spec: Spec | None = None) -> list[str]:
    """Write the generated files, or with *check* only look; return the paths that were stale.

    A rule file that nothing generates any more (a service that was renamed) is stale too, and removed.
    """
    wanted = files(spec or slo_spec.load())
    known = {str(path.relative_to(root)) for path in (root / RULES).glob("*.yaml")}
    stale = sorted(known - set(wanted))
    for path, text in wanted.items():
        target = root / path
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            stale.append(path)
            if not check:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
    if not check:
        for path in known - set(wanted):
            (root / path).unlink()
    return stale
