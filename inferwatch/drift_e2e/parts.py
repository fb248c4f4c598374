"""A compressed spec and a reference -> running Prometheus, Alertmanager, receiver and drift exporter with its tap."""

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from inferwatch.stack import binaries, processes
from inferwatch.stack.config import write_text
from inferwatch.stack.processes import Service
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import HOST, Settings
from inferwatch.stack.state import Record
from slo.names import labels
from slo.spec import Spec

TOKEN = "end-to-end-run-token"
NAMES = ("metrics", "ingest", "tap", "prometheus", "alertmanager", "receiver")


@dataclass(frozen=True)
class Ports:
    """A free loopback port for each part."""

    of: dict[str, int]

    def url(self, name: str) -> str:
        """Base URL of a part."""
        return f"http://{HOST}:{self.of[name]}"


def free_ports() -> Ports:
    """Ports that are free now; all are held until the last is found, so that none is given twice."""
    sockets = [socket.socket() for _ in NAMES]
    for one in sockets:
        one.bind((HOST, 0))
    ports = Ports({name: one.getsockname()[1] for name, one in zip(NAMES, sockets, strict=True)})
    for one in sockets:
        one.close()
    return ports


def write_all(
    spec: Spec, settings: Settings, folder: Path, ports: Ports, reference: Path, upstream: str
) -> None:
    """Write rules, configurations, token and spec into *folder*."""
    from alerts.alertmanager import config as alertmanager
    from alerts.drift import drift_groups
    from alerts.rule import rule_file
    from alerts.scope import Scope

    service = spec.services[0]
    write_text(folder / "rules.yaml", rule_file(drift_groups(Scope(spec, service))))
    write_text(
        folder / "slo.yaml", yaml.safe_dump(json.loads(spec.model_dump_json(by_alias=True)), sort_keys=False)
    )
    write_text(folder / "token", TOKEN + "\n")
    where = {name: f"{HOST}:{port}" for name, port in ports.of.items()}
    tap = {"upstream": upstream, "listen": where["tap"]}
    drift = {
        "references": [{"file": str(reference)}],
        "ingest": {"listen": where["ingest"], "token_file": "token"},
        "tap": tap,
    }
    write_text(folder / "drift.yml", yaml.safe_dump(drift))
    prometheus = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(folder / "rules.yaml")],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [where["alertmanager"]]}]}]},
        "scrape_configs": [
            {
                "job_name": labels.JOB_DRIFT,
                "static_configs": [{"targets": [where["metrics"]], "labels": {labels.SERVICE: service.id}}],
            }
        ],
    }
    write_text(folder / "prometheus.yml", yaml.safe_dump(prometheus))
    templates = str(settings.root / "alerts" / "alertmanager" / alertmanager.TEMPLATES)
    hook = f"{ports.url('receiver')}/notify"
    write_text(folder / "alertmanager.yml", alertmanager.render(spec, webhook_url=hook, templates=templates))


def services(folder: Path, ports: Ports, paths: dict[str, Path]) -> list[Service]:
    """What runs, in start order."""
    python = (sys.executable, "-m")

    def listen(name: str) -> str:
        return f"{HOST}:{ports.of[name]}"

    exporter = (
        "exporters",
        "drift",
        "--config",
        str(folder / "drift.yml"),
        "--spec",
        str(folder / "slo.yaml"),
    )
    receiver = ("inferwatch.stack.receiver", "--port", str(ports.of["receiver"]))
    return [
        Service(
            "receiver", (*python, *receiver, "--file", str(folder / "notifications.jsonl")),
            ports.url("receiver"), "/-/healthy",
        ),
        Service(
            "exporter-drift", (*python, *exporter, "--listen", listen("metrics")), ports.url("metrics"), "/-/ready",
            ready_timeout_seconds=120.0,
        ),
        Service(
            "alertmanager",
            (str(paths["alertmanager"]), f"--config.file={folder}/alertmanager.yml",
             f"--storage.path={folder}/alertmanager", f"--web.listen-address={listen('alertmanager')}",
             "--cluster.listen-address="),
            ports.url("alertmanager"), "/-/ready",
        ),
        Service(
            "prometheus",
            (str(paths["prometheus"]), f"--config.file={folder}/prometheus.yml",
             f"--storage.tsdb.path={folder}/prometheus", f"--web.listen-address={listen('prometheus')}"),
            ports.url("prometheus"), "/-/ready",
        ),
    ]  # fmt: skip


@contextmanager
def running(settings: Settings, folder: Path, ports: Ports, reporter: Reporter) -> Iterator[None]:
    """Start all parts and wait for each; end them whatever happens."""
    paths = {name: binaries.resolve(name, settings, reporter).path for name in ("prometheus", "alertmanager")}
    started: list[Record] = []
    try:
        wanted = services(folder, ports, paths)
        for service in wanted:
            started.append(processes.start(service, folder / "logs"))
        for service, record in zip(wanted, started, strict=True):
            processes.wait_ready(service, record, reporter)
        yield
    finally:
        for record in reversed(started):
            processes.stop(record)
