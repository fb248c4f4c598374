"""Spec, settings and selection -> all files that the services read, written before any of them starts."""

import shutil
from typing import Any
from urllib.parse import urlsplit

from inferwatch.stack import config
from inferwatch.stack.errors import StackError
from inferwatch.stack.settings import Settings
from inferwatch.stack.state import Selection
from slo.spec import Spec

DEFAULT_PORTS = {"http": 80, "https": 443}


def write_all(spec: Spec, settings: Settings, selection: Selection) -> None:
    """Write targets, Prometheus', Alertmanager's and the exporters' configuration."""
    config.write_json(settings.targets_file, config.engine_targets(selection))
    config.write_yaml(settings.prometheus_config, config.prometheus_config(spec, settings))
    config.write_yaml(settings.exporter_config, {"allow": allowed_targets(selection)})
    write_alertmanager(settings)


def allowed_targets(selection: Selection) -> list[dict[str, Any]]:
    """What the engine exporter may read: exactly the engines that were chosen."""
    entries = []
    for url in selection.urls:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        entries.append({"scheme": parts.scheme, "host": parts.hostname, "ports": [port]})
    return entries


def write_alertmanager(settings: Settings) -> None:
    """
    Copy the committed Alertmanager configuration and point its receivers at the local one.

    Receivers read their URL from secret files beside the configuration.
    """
    source = settings.root / "alerts" / "alertmanager"
    target = settings.alertmanager_config.parent
    if not (source / settings.alertmanager_config.name).is_file():
        raise StackError(f"{source} has no {settings.alertmanager_config.name}; run `inferwatch gen`")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target, dirs_exist_ok=True)
