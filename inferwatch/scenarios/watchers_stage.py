"""What only the stage of the watchers has: a second Alertmanager, a second webhook, and their configuration."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from inferwatch.scenarios.stage import PORTS_A_STAGE
from inferwatch.stack import config, services
from inferwatch.stack.processes import Service
from inferwatch.stack.settings import HOST, Settings
from slo.names import labels
from slo.spec import Spec

SECOND_ALERTMANAGER = "alertmanager-2"
SECOND_RECEIVER = "receiver-2"


def clustered(service: Service, own: Settings) -> Service:
    """The first Alertmanager, as one of a cluster."""
    words = tuple(word for word in service.argv if not word.startswith("--cluster."))
    return replace(service, argv=(*words, f"--cluster.listen-address={HOST}:{_extra(own, 'gossip')}"))


def _extra(own: Settings, what: str) -> int:
    """Port of what only the watchers have, counted from the end of the stage's range."""
    names = ("gossip", "gossip-2", SECOND_ALERTMANAGER, SECOND_RECEIVER)
    return own.base_port + PORTS_A_STAGE - 1 - names.index(what)


def second_ones(own: Settings, alertmanager: Path) -> list[Service]:
    """A second Alertmanager and a second way of notification."""
    peer, second = _extra(own, SECOND_ALERTMANAGER), _extra(own, SECOND_RECEIVER)
    return [
        Service(
            name=SECOND_ALERTMANAGER,
            argv=(
                str(alertmanager),
                f"--config.file={own.alertmanager_config}",
                f"--storage.path={own.data_dir / SECOND_ALERTMANAGER}",
                f"--web.listen-address={HOST}:{peer}",
                f"--cluster.listen-address={HOST}:{_extra(own, 'gossip-2')}",
                f"--cluster.peer={HOST}:{_extra(own, 'gossip')}",
            ),
            url=f"http://{HOST}:{peer}",
            ready_path="/-/ready",
            config_files=(own.alertmanager_config,),
            reload_path="/-/reload",
        ),
        Service(
            name=SECOND_RECEIVER,
            argv=services.python(
                *("inferwatch.stack.receiver", "--port", str(second)),
                *("--file", str(own.run_dir / "notifications-2.jsonl")),
            ),
            url=f"http://{HOST}:{second}",
            ready_path="/-/healthy",
        ),
    ]


def widen(prometheus: dict[str, Any], own: Settings) -> None:
    """Send alerts to both Alertmanagers and scrape the second one."""
    peer = f"{HOST}:{_extra(own, SECOND_ALERTMANAGER)}"
    prometheus["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"].append(peer)
    jobs = prometheus["scrape_configs"]
    job = next(entry for entry in jobs if entry["job_name"] == labels.JOB_ALERTMANAGER)
    job["static_configs"][0]["targets"].append(peer)


def two_ways(spec: Spec, own: Settings) -> str:
    """Alertmanager's configuration with a second webhook beside the local receiver."""
    from alerts.alertmanager import config as alertmanager

    secret = own.run_dir / "second-webhook"
    config.write_text(secret, f"http://{HOST}:{_extra(own, SECOND_RECEIVER)}/notify")
    return alertmanager.render(
        spec,
        webhook_url=f"{own.url('receiver')}/notify",
        webhook_url_file=str(secret),
        templates=str(own.root / "alerts" / "alertmanager" / alertmanager.TEMPLATES),
    )
