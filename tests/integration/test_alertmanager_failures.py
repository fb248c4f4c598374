"""What a real Alertmanager counts as a notification that failed, which NotificationsFailing reads."""

import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from .amtools import started, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]
FAILED = "alertmanager_notifications_failed_total"
ATTEMPTS_FAILED = "alertmanager_notification_requests_failed_total"


class Receiver(ThreadingHTTPServer):
    """Turns away the first two notifications, and each one of an alert named `never`."""

    answers: list[int]


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        code = 503 if len(self.server.answers) < 2 or b'"never"' in body else 200
        self.server.answers.append(code)
        self.send_response(code)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A webhook on a free port."""
    server = Receiver(("127.0.0.1", 0), _Handler)
    server.answers = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def counted(url: str, counter: str) -> float:
    """The counter's sum over the webhook's series."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=5) as answer:
        lines = answer.read().decode("utf-8").splitlines()
    return sum(float(one.split()[-1]) for one in lines if one.startswith(f'{counter}{{integration="webhook"'))


def test_only_what_was_given_up_counts_as_failed(tmp_path: Path, receiver: Receiver) -> None:
    """Two attempts that a third made good are no failure; one that fails until its group's interval is over is."""
    config = tmp_path / "alertmanager.yml"
    hook = {"url": f"http://127.0.0.1:{receiver.server_port}/"}
    route = {"receiver": "r", "group_by": ["alertname"], "group_wait": "0s", "group_interval": "5s"}
    config.write_text(
        yaml.safe_dump({"route": route, "receivers": [{"name": "r", "webhook_configs": [hook]}]}),
        encoding="utf-8",
    )
    with started(config, tmp_path) as running:
        running.post({"alertname": "late"})
        wait_for(lambda: receiver.answers == [503, 503, 200], 20)
        time.sleep(0.5)
        assert (counted(running.url, FAILED), counted(running.url, ATTEMPTS_FAILED)) == (0, 2)

        running.post({"alertname": "never"})
        # Alertmanager gives each notification ten seconds at least.
        wait_for(lambda: counted(running.url, FAILED) > 0, 30)
        assert counted(running.url, ATTEMPTS_FAILED) > 3
