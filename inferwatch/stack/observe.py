"""slo.yaml and a selection -> the spec in force natively: what is only observed, and links that open here."""

import json
import time
from pathlib import Path

from inferwatch.stack import config
from inferwatch.stack.errors import StackError
from inferwatch.stack.settings import Settings
from inferwatch.stack.state import Selection
from slo.spec import Spec
from slo.trust import Links


def is_observed(settings: Settings, selection: Selection) -> bool:
    """Attached engines are observed until their service was accepted; our own engines never are."""
    return selection.engine == "urls" and selection.service not in accepted(settings)


def accepted(settings: Settings) -> dict[str, float]:
    """Service -> when it was accepted, Unix seconds; StackError for a damaged file."""
    path = settings.accepted_file
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return {str(service): float(at) for service, at in raw.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError, TypeError) as error:
        raise StackError(f"{path} is damaged ({error!r}); remove it and accept again") from error


def accept(settings: Settings, service: str) -> None:
    """Remember that the latency thresholds of *service* are promises from now on."""
    config.write_json(settings.accepted_file, accepted(settings) | {service: time.time()})


def spec_in_force(spec: Spec, settings: Settings, selection: Selection) -> Spec:
    """*spec* with the stack's own links, and the selected service marked as observed where it is."""
    spec = spec.model_copy(update={"links": links_in_force(spec.links, settings)})
    if not is_observed(settings, selection):
        return spec
    services = tuple(
        service.model_copy(update={"observe": True}) if service.id == selection.service else service
        for service in spec.services
    )
    return spec.model_copy(update={"services": services})


def links_in_force(links: Links, settings: Settings) -> Links:
    """Links of notifications: the stack's own pages in place of a Grafana on loopback and of a runbook's path.

    Nothing of ours listens where slo.yaml expects compose's Grafana, and a path opens in no browser. An
    address that leads to another machine is a person's choice and stays.
    """
    pages = settings.url("dashboards")
    changed = {}
    if links.dashboards_are_local:
        changed["dashboard_base"] = pages
    if links.runbooks_are_local:
        changed["runbook_base"] = f"{pages}/runbooks"
    return links.model_copy(update=changed)


def write_rules(spec: Spec, settings: Settings, selection: Selection) -> None:
    """Write the rules that Prometheus reads for this selection."""
    from alerts import render

    texts = render.files(spec_in_force(spec, settings, selection))
    wanted = {Path(path).name: text for path, text in texts.items() if path.startswith(render.RULES)}
    folder = settings.rules_dir
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.yaml"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        config.write_text(folder / name, text)
