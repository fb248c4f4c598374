"""Tools of Alertmanager, as its tests run them: the pinned ones or the distribution's, and one that runs."""

import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from inferwatch.stack import binaries
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import default_settings


def tool(name: str, old: bool = False) -> str:
    """Path of amtool or alertmanager, the pinned one or the distribution's."""
    find = binaries.from_distribution if old else binaries.resolve
    return str(find(name, default_settings(), Reporter(Console(stderr=True))).path)


@dataclass(frozen=True)
class Running:
    """An Alertmanager that runs."""

    url: str
    log: Path

    def post(self, *alerts: dict[str, str]) -> None:
        """Send alerts, given as labels, as Prometheus does."""
        now = datetime.now(UTC).isoformat()
        body = [
            {"labels": labels, "annotations": {"summary": f"{labels['alertname']} it is"}, "startsAt": now}
            for labels in alerts
        ]
        request = urllib.request.Request(
            f"{self.url}/api/v2/alerts", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=5) as answer:
            assert answer.status == 200

    def get(self, path: str) -> Any:
        """An answer of the API."""
        with urllib.request.urlopen(f"{self.url}{path}", timeout=5) as answer:
            return json.load(answer)

    def inhibited(self) -> set[str]:
        """Alerts that something else silences, as name(model,instance)."""
        return {
            _shown(alert["labels"]) for alert in self.get("/api/v2/alerts") if alert["status"]["inhibitedBy"]
        }


def _shown(labels: dict[str, str]) -> str:
    where = ",".join(labels[name] for name in ("model", "instance") if name in labels)
    return f"{labels['alertname']}({where})" if where else labels["alertname"]


def wait_for(condition: Callable[[], object], seconds: float) -> None:
    """Return when the condition holds; fail when it does not within the time."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.05)


@contextmanager
def started(config: Path, tmp_path: Path) -> Iterator[Running]:
    """The pinned Alertmanager on this configuration, ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path / "log"
    with log.open("w", encoding="utf-8") as sink:
        process = subprocess.Popen(
            [
                tool("alertmanager"),
                f"--config.file={config}",
                f"--storage.path={tmp_path / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--cluster.listen-address=",
            ],
            stdout=sink,
            stderr=sink,
        )
    running = Running(f"http://127.0.0.1:{port}", log)
    try:
        wait_for(lambda: _answers(f"{running.url}/-/ready"), 30)
        yield running
    finally:
        process.terminate()
        process.wait(timeout=20)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def engine(name: str, model: str, instance: str = "", severity: str = "page", **more: str) -> dict[str, str]:
    """Labels of an alert of ours."""
    where = {"instance": instance} if instance else {}
    return {"alertname": name, "severity": severity, "service": "llm", "model": model, **where, **more}
