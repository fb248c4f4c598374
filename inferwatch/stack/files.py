"""Spec, settings and selection -> all files that the services read, written before any of them starts."""

from typing import Any
from urllib.parse import urlsplit

from inferwatch.stack import config, observe, traces
from inferwatch.stack.errors import StackError
from inferwatch.stack.settings import Settings
from inferwatch.stack.state import Selection
from slo.spec import Spec

DEFAULT_PORTS = {"http": 80, "https": 443}


def write_all(spec: Spec, settings: Settings, selection: Selection, *, traced: bool = False) -> None:
    """Write targets, Prometheus', Alertmanager's, the exporters' and, where *traced*, the collector's files."""
    if traced:
        traces.write_files(settings)
        config.write_json(settings.rag_file, config.rag_targets(settings) if selection.rag else [])
    config.write_json(settings.targets_file, config.engine_targets(selection))
    config.write_json(settings.own_drift_file, config.drift_targets(settings, selection))
    observe.write_rules(spec, settings, selection)
    config.write_yaml(settings.prometheus_config, config.prometheus_config(spec, settings, traced=traced))
    config.write_yaml(settings.exporter_config, {"allow": allowed_targets(selection)})
    config.write_text(settings.alertmanager_config, alertmanager_config(spec, settings))


def allowed_targets(selection: Selection) -> list[dict[str, Any]]:
    """What the engine exporter may read: exactly the engines that were chosen."""
    entries = []
    for url in selection.urls:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        entries.append({"scheme": parts.scheme, "host": parts.hostname, "ports": [port]})
    return entries


def alertmanager_config(spec: Spec, settings: Settings) -> str:
    """
    Alertmanager's configuration with every route ending at the local receiver.

    Secret files in .inferwatch/secrets (slack_url, pagerduty_routing_key, ...) switch on other ways beside it.
    """
    from alerts.alertmanager import config as alertmanager
    from alerts.alertmanager.receivers import ReceiverError

    try:
        return alertmanager.render(
            spec,
            secrets_dir=settings.secrets_dir,
            webhook_url=f"{settings.url('receiver')}/notify",
            templates=str(settings.root / "alerts" / "alertmanager" / alertmanager.TEMPLATES),
        )
    except ReceiverError as error:
        raise StackError(str(error)) from error
