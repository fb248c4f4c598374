"""A page by every way at once, through a real Alertmanager on our configuration: Slack, PagerDuty, e-mail over TLS, webhook."""

import email
import email.policy
import json
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from alerts.alertmanager import render
from inferwatch.stack import binaries
from inferwatch.stack.progress import to_stderr
from inferwatch.stack.settings import default_settings
from slo import spec as slo_spec
from tests.exporters.conftest import make_certificate

from .programs import free_port, running

TEMPLATES = Path(__file__).resolve().parents[2] / "alerts" / "alertmanager" / "templates"
TITLE = "[PAGE] chat / m: EngineDown"
RUNBOOK, DASHBOARD = "https://runbooks/EngineDown.md", "https://grafana/d/inferwatch-engine"
LINES = [
    "[firing] EngineDown: chat / m: engine a:8000 is down (refused)",
    "  The engine does not answer its probes.",
    f"  What to do: {RUNBOOK}",
    f"  See: {DASHBOARD}",
]
PAGE = {
    "labels": {
        "alertname": "EngineDown",
        "severity": "page",
        "service": "chat",
        "model": "m",
        "instance": "a:8000",
    },
    "annotations": {
        "summary": "chat / m: engine a:8000 is down (refused)",
        "description": "The engine does not answer its probes.",
        "runbook_url": RUNBOOK,
        "dashboard_url": DASHBOARD,
    },
}
pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@dataclass
class Sinks:
    """What arrived, by way; secrets are what each sink was shown by the sender."""

    posts: dict[str, Any] = field(default_factory=dict)
    mails: list[Envelope] = field(default_factory=list)
    logins: list[LoginPassword] = field(default_factory=list)
    over_tls: list[bool] = field(default_factory=list)

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """Keep a mail, as aiosmtpd asks its handler to."""
        self.over_tls.append(session.ssl is not None)
        self.mails.append(envelope)
        return "250 OK"

    def login(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: LoginPassword
    ) -> AuthResult:
        """Let everybody in and remember who it was."""
        self.logins.append(given)
        return AuthResult(success=True)


@pytest.fixture
def http(sinks: Sinks) -> Iterator[str]:
    """A server that keeps the last JSON posted to each path, and answers as Slack and PagerDuty do."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sinks.posts[self.path] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(202 if self.path == "/pagerduty" else 200)
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def sinks() -> Sinks:
    """Nothing yet."""
    return Sinks()


@pytest.fixture
def smtp(sinks: Sinks, tmp_path: Path) -> Iterator[str]:
    """A mail server that wants STARTTLS and a login; HOST:PORT. Its certificate is smtp.pem."""
    make_certificate(tmp_path, "smtp")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "smtp.pem", tmp_path / "smtp-key.pem")
    port = free_port()
    controller = Controller(
        sinks,
        hostname="127.0.0.1",
        port=port,
        tls_context=context,
        require_starttls=True,
        authenticator=sinks.login,
        auth_required=True,
        auth_exclude_mechanism=["LOGIN"],  # aiosmtpd asks for "User Name", which Alertmanager does not take
    )
    controller.start()
    yield f"localhost:{port}"
    controller.stop()


@pytest.fixture
def delivered(http: str, smtp: str, sinks: Sinks, tmp_path: Path) -> Sinks:
    """What arrives by each way of one page, sent as Prometheus sends it. Only PagerDuty's address is not ours to set by file."""
    secrets = {
        "webhook_url": f"{http}/webhook",
        "slack_url": f"{http}/slack",
        "pagerduty_routing_key": "routing-key",
        "email_password": "pass word",
        "email_settings": f"to=oncall@example.org\nfrom=inferwatch@example.org\nsmarthost={smtp}\nusername=me\n",
    }
    (tmp_path / "secrets").mkdir()
    for name, text in secrets.items():
        (tmp_path / "secrets" / name).write_text(text, encoding="utf-8")
    rendered = render(
        slo_spec.load(),
        secrets_dir=tmp_path / "secrets",
        webhook_url_file=str(tmp_path / "secrets" / "webhook_url"),
        templates=str(TEMPLATES / "*.tmpl"),
    )
    content = yaml.safe_load(rendered)
    content["global"]["pagerduty_url"] = f"{http}/pagerduty"
    config = tmp_path / "alertmanager.yml"
    config.write_text(yaml.safe_dump(content), encoding="utf-8")
    words = (f"--config.file={config}", f"--storage.path={tmp_path / 'data'}", "--cluster.listen-address=")
    path = binaries.resolve("alertmanager", default_settings(), to_stderr()).path
    with running(path, tmp_path, *words, env={"SSL_CERT_FILE": str(tmp_path / "smtp.pem")}) as url:
        alert = {**PAGE, "startsAt": datetime.now(UTC).isoformat()}
        assert urllib3.request("POST", f"{url}/api/v2/alerts", json=[alert], timeout=5).status == 200
        deadline = time.monotonic() + 60
        while not (len(sinks.posts) == 3 and sinks.mails):
            log = (tmp_path / "log").read_text(errors="replace")[-1500:]
            assert time.monotonic() < deadline, f"only {sorted(sinks.posts)}, {len(sinks.mails)} mails: {log}"
            time.sleep(0.1)
    return sinks


def test_a_page_arrives_by_every_way_with_what_to_do(delivered: Sinks) -> None:
    """Each says whose it is, what is wrong, what to do and where to look, and was sent with its own secret."""
    (shown,) = delivered.posts["/slack"]["attachments"]
    assert (shown["title"], shown["title_link"], shown["color"]) == (TITLE, DASHBOARD, "danger")
    assert shown["fallback"] == TITLE
    assert shown["text"].strip().splitlines() == LINES

    event = delivered.posts["/pagerduty"]
    assert (event["routing_key"], event["event_action"]) == ("routing-key", "trigger")
    assert (event["payload"]["summary"], event["payload"]["severity"]) == (TITLE, "critical")
    assert event["payload"]["custom_details"]["alerts"].strip().splitlines() == LINES

    (alert,) = delivered.posts["/webhook"]["alerts"]
    assert delivered.posts["/webhook"]["receiver"] == "page"
    assert alert["annotations"] == PAGE["annotations"]

    (sent,) = delivered.mails
    mail = email.message_from_bytes(sent.content, policy=email.policy.default)
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert (sent.mail_from, sent.rcpt_tos) == ("inferwatch@example.org", ["oncall@example.org"])
    assert mail["Subject"] == TITLE
    assert text is not None and text.get_content().strip().splitlines() == LINES
    assert html is not None and f'What to do: <a href="{RUNBOOK}">' in html.get_content()
    assert delivered.over_tls == [True]
    assert [(login.login, login.password) for login in delivered.logins] == [(b"me", b"pass word")]
