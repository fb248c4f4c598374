"""Secret files that are there -> the ways on which a receiver notifies; no secret is ever read or copied.

Each way is switched on by its file in the secrets folder and refers to that file by path.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

TITLE = '{{ template "inferwatch.title" . }}'
TEXT = '{{ template "inferwatch.text" . }}'


class ReceiverError(ValueError):
    """A way of notification is set up by half; the text names the file and the mend."""


@dataclass(frozen=True)
class Webhook:
    """Where alerts are posted as JSON: a URL, or a file that holds one."""

    url: str | None = None
    url_file: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The entry of webhook_configs."""
        where = {"url": self.url} if self.url else {"url_file": self.url_file}
        return where | {"send_resolved": True}


def _slack(secrets: Path, shown: str, severity: str) -> dict[str, Any] | None:
    if not (secrets / "slack_url").is_file():
        return None
    return {
        "api_url_file": f"{shown}/slack_url",
        "send_resolved": True,
        "color": '{{ if eq .Status "resolved" }}good{{ else }}'
        + ("danger" if severity == "page" else "warning")
        + "{{ end }}",
        "title": TITLE,
        "title_link": "{{ .CommonAnnotations.dashboard_url }}",
        "text": TEXT,
        "fallback": TITLE,
    }


def _pagerduty(secrets: Path, shown: str, severity: str) -> dict[str, Any] | None:
    if severity != "page" or not (secrets / "pagerduty_routing_key").is_file():
        return None
    return {
        "routing_key_file": f"{shown}/pagerduty_routing_key",
        "send_resolved": True,
        "severity": "critical",
        "description": TITLE,
        "details": {"alerts": TEXT},
    }


def _email(secrets: Path, shown: str, severity: str) -> dict[str, Any] | None:
    """The password is a secret; who sends to whom through which host stands in email_settings beside it."""
    if not (secrets / "email_password").is_file():
        return None
    settings = _settings(secrets / "email_settings")
    return {
        "to": settings["to"],
        "from": settings["from"],
        "smarthost": settings["smarthost"],
        "auth_username": settings.get("username", settings["from"]),
        "auth_password_file": f"{shown}/email_password",
        "send_resolved": True,
        "headers": {"Subject": TITLE},
        "html": '{{ template "inferwatch.email" . }}',
        "text": TEXT,
    }


def _settings(path: Path) -> dict[str, str]:
    if not path.is_file():
        raise ReceiverError(f"{path}: missing beside email_password; write lines to=, from= and smarthost=")
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    settings: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith("#"):
            name, equals, value = line.partition("=")
            if not equals:
                raise ReceiverError(f"{path}: {line!r}: not name=value; write it so")
            settings[name.strip()] = value.strip()
    if missing := [name for name in ("to", "from", "smarthost") if not settings.get(name)]:
        raise ReceiverError(f"{path}: {missing[0]} is missing; add a line {missing[0]}=")
    if unknown := sorted(set(settings) - {"to", "from", "smarthost", "username"}):
        raise ReceiverError(f"{path}: {unknown[0]}: unknown; use to, from, smarthost, username")
    return settings


WAYS = (("slack_configs", _slack), ("pagerduty_configs", _pagerduty), ("email_configs", _email))
"""Alertmanager's key -> what makes an entry of it."""


def receiver(
    name: str, severity: str, secrets: Path | None, shown: str, webhooks: tuple[Webhook, ...]
) -> dict[str, Any]:
    """Return one receiver; with no secret and no webhook it only holds alerts for the web page.

    *secrets* is looked into for files, *shown* is the same folder as Alertmanager sees it. A file
    `webhook_url` there adds a webhook to those given. Raises ReceiverError.
    """
    entry: dict[str, Any] = {"name": name}
    hooks = list(webhooks)
    if secrets and (secrets / "webhook_url").is_file():
        hooks.append(Webhook(url_file=f"{shown}/webhook_url"))
    if hooks:
        entry["webhook_configs"] = [hook.as_dict() for hook in hooks]
    if secrets:
        for key, way in WAYS:
            if found := way(secrets, shown, severity):
                entry[key] = [found]
    return entry
