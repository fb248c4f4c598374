"""slo.yaml and the secret files that are there -> alertmanager.yml."""

from pathlib import Path
from typing import Any

from alerts.alertmanager.inhibition import INHIBITIONS
from alerts.alertmanager.receivers import Webhook, receiver
from alerts.rule import to_yaml
from slo.duration import format_seconds
from slo.names import alerts, labels
from slo.spec import Spec

TEMPLATES = "templates/*.tmpl"
WATCHDOG = "watchdog"
OBSERVED = "observed"
"""Where alerts go that are only to be seen: a service's latency before anyone accepted its thresholds."""
GROUP_BY = [labels.SERVICE, labels.MODEL]
# A page never waits for a group that was notified before it: each kind of page is a group of its own.
PAGE_GROUP_BY = [*GROUP_BY, labels.ALERTNAME]


def render(
    spec: Spec,
    secrets_dir: Path | None = None,
    webhook_url: str | None = None,
    webhook_url_file: str | None = None,
    templates: str = TEMPLATES,
    secrets_shown: str | None = None,
) -> str:
    """Return alertmanager.yml; without arguments one that starts with no secret and notifies nobody.

    *secrets_dir* holds any of webhook_url, slack_url, pagerduty_routing_key, email_password with
    email_settings, watchdog_url; *secrets_shown* is that folder as Alertmanager sees it. *templates* is
    a glob, relative to the file that is written. Raises alerts.alertmanager.receivers.ReceiverError.
    """
    shown = secrets_shown or str(secrets_dir or "")
    hooks = tuple(
        hook
        for hook in (Webhook(url=webhook_url), Webhook(url_file=webhook_url_file))
        if hook.url or hook.url_file
    )
    receivers = [receiver(r.receiver, r.severity, secrets_dir, shown, hooks) for r in spec.routes]
    return to_yaml(
        {
            "global": {"resolve_timeout": format_seconds(spec.intervals.resolve_timeout_seconds)},
            "templates": [templates],
            "route": _routes(spec),
            "inhibit_rules": [inhibition.as_dict() for inhibition in INHIBITIONS],
            "receivers": [*_unique(receivers), _watchdog(secrets_dir, shown, hooks), {"name": OBSERVED}],
        }
    )


def _unique(receivers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Two severities may go to one receiver; the first, which is the more severe, decides its look."""
    return list({entry["name"]: entry for entry in reversed(receivers)}.values())[::-1]


def _watchdog(secrets: Path | None, shown: str, hooks: tuple[Webhook, ...]) -> dict[str, Any]:
    if secrets and (secrets / "watchdog_url").is_file():
        hooks = (Webhook(url_file=f"{shown}/watchdog_url"),)
    entry: dict[str, Any] = {"name": WATCHDOG}
    if hooks:
        entry["webhook_configs"] = [hook.as_dict() for hook in hooks]
    return entry


def _routes(spec: Spec) -> dict[str, Any]:
    intervals = spec.intervals
    every = intervals.watchdog_repeat_seconds
    quick = {
        "group_by": PAGE_GROUP_BY,
        "group_wait": format_seconds(intervals.page_group_wait_seconds),
        "group_interval": format_seconds(intervals.page_group_interval_seconds),
    }
    by_severity = [
        {"matchers": [f'{labels.SEVERITY}="{route.severity}"'], "receiver": route.receiver}
        | (quick if route.severity == "page" else {})
        for route in spec.routes
    ]
    fallback = next(route.receiver for route in spec.routes if route.severity == "warning")
    return {
        "receiver": fallback,
        "group_by": GROUP_BY,
        "group_wait": format_seconds(intervals.group_wait_seconds),
        "group_interval": format_seconds(intervals.group_interval_seconds),
        "repeat_interval": format_seconds(intervals.repeat_interval_seconds),
        "routes": [
            {
                "matchers": [f'alertname="{alerts.WATCHDOG}"'],
                "receiver": WATCHDOG,
                "group_wait": "0s",
                "group_interval": format_seconds(every),
                # Below the group's interval: of equal ones the repetition is never quite due, and every other is left out.
                "repeat_interval": format_seconds(max(1, every // 2)),
            },
            *by_severity,
            {"matchers": [f'{labels.SEVERITY}="none"'], "receiver": OBSERVED},
        ],
    }
