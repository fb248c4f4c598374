"""Which service is only observed: engines of a stranger, until a person accepts the latency thresholds."""

import json
import time
from pathlib import Path

from inferwatch.stack import config
from inferwatch.stack.errors import StackError
from inferwatch.stack.settings import Settings
from inferwatch.stack.state import Selection
from slo.spec import Spec


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
    """*spec*, with the selected service marked as observed where it is."""
    if not is_observed(settings, selection):
        return spec
    services = tuple(
        service.model_copy(update={"observe": True}) if service.id == selection.service else service
        for service in spec.services
    )
    return spec.model_copy(update={"services": services})


def rules_folder(settings: Settings, selection: Selection) -> Path:
    """Where Prometheus reads its rules for this selection."""
    return settings.observed_rules if is_observed(settings, selection) else settings.root / "alerts" / "rules"


def write_rules(spec: Spec, settings: Settings, selection: Selection) -> None:
    """Write the rules of an observed service; nothing for any other, whose rules are the checkout's."""
    if not is_observed(settings, selection):
        return
    from alerts import render

    texts = render.files(spec_in_force(spec, settings, selection))
    wanted = {Path(path).name: text for path, text in texts.items() if path.startswith(render.RULES)}
    folder = settings.observed_rules
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.yaml"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        config.write_text(folder / name, text)
