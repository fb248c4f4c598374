"""Dashboards -> a running Grafana over its HTTP API, and what it said: loaded, read back, queried."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import urllib3

from dashboards.style import Json


class GrafanaError(RuntimeError):
    """Grafana cannot be used; the text says why and what to set."""


@dataclass(frozen=True)
class Grafana:
    """A Grafana at *url*; *headers* carry who asks."""

    url: str
    headers: Mapping[str, str]

    def ask(self, method: str, path: str, body: Json | None = None) -> Any:
        """Decoded JSON of the answer.

        Raises GrafanaError when it is not 2xx or not JSON.
        """
        try:
            answer = urllib3.request(
                method, self.url.rstrip("/") + path, headers={**self.headers, "Content-Type": "application/json"},
                body=json.dumps(body) if body is not None else None, timeout=20.0, retries=False, redirect=False,
            )  # fmt: skip
        except urllib3.exceptions.HTTPError as error:
            raise GrafanaError(f"{self.url} cannot be reached: {error}") from error
        said = answer.data.decode("utf-8", "replace")
        if answer.status // 100 != 2:
            raise GrafanaError(f"{method} {path} answered HTTP {answer.status}: {said[:300]}")
        try:
            return json.loads(said)
        except ValueError as error:
            raise GrafanaError(f"{method} {path} answered no JSON; is {self.url} Grafana?") from error


def from_environment(environ: Mapping[str, str] = os.environ) -> Grafana:
    """GRAFANA_URL with GRAFANA_TOKEN, or GRAFANA_USER and GRAFANA_PASSWORD.

    Raises GrafanaError when GRAFANA_URL is not set.
    """
    url = environ.get("GRAFANA_URL", "")
    if not url:
        raise GrafanaError("GRAFANA_URL is not set; set it to a Grafana, for example http://127.0.0.1:3000")
    if token := environ.get("GRAFANA_TOKEN"):
        return Grafana(url, {"Authorization": f"Bearer {token}"})
    user, password = environ.get("GRAFANA_USER"), environ.get("GRAFANA_PASSWORD")
    if user and password:
        return Grafana(url, urllib3.make_headers(basic_auth=f"{user}:{password}"))
    return Grafana(url, {})


def verify(boards: Mapping[str, Json], grafana: Grafana) -> list[str]:
    """Load each dashboard, read it back, and run its queries through Grafana; one line a fault.

    Dashboards of the same uid are overwritten. Raises GrafanaError when Grafana itself cannot be used.
    """
    health = grafana.ask("GET", "/api/health")
    if health.get("database") != "ok":
        raise GrafanaError(f"{grafana.url} says of itself: {health}")
    sources = [s for s in grafana.ask("GET", "/api/datasources") if s.get("type") == "prometheus"]
    if not sources:
        raise GrafanaError(f"{grafana.url} has no Prometheus data source; provision dashboards/provisioning")
    source = next((s for s in sources if s.get("isDefault")), sources[0])["uid"]
    faults = []
    for uid, board in boards.items():
        try:
            grafana.ask("POST", "/api/dashboards/db", {"dashboard": board, "overwrite": True})
            loaded = grafana.ask("GET", f"/api/dashboards/uid/{uid}")["dashboard"]
        except GrafanaError as error:
            faults.append(f"{uid}: {error}")
            continue
        if len(loaded.get("panels", ())) != len(board["panels"]):
            faults.append(
                f"{uid}: {len(loaded.get('panels', ()))} panels came back of {len(board['panels'])}"
            )
        faults += [f"{uid}: {fault}" for fault in _queries(board, grafana, source)]
    return faults


def _queries(board: Json, grafana: Grafana, source: str) -> list[str]:
    """Run each panel's queries as the browser would, with every variable on All."""
    names = [v["name"] for v in board["templating"]["list"] if v["type"] == "query"]
    faults = []
    for panel in board["panels"]:
        if panel["type"] == "row":
            continue
        asked = [_request(target, names, source) for target in panel["targets"]]
        try:
            found = grafana.ask("POST", "/api/ds/query", {"queries": asked, "from": "now-1h", "to": "now"})
        except GrafanaError as error:
            faults.append(f"{panel['title']}: {error}")
            continue
        faults += [
            f"{panel['title']} ({ref}): {result['error']}"
            for ref, result in found.get("results", {}).items()
            if result.get("error")
        ]
    return faults


def _request(target: Json, names: list[str], source: str) -> Json:
    expr = target["expr"]
    for name in names:
        expr = expr.replace(f'"${name}"', '".*"')
    return {
        **target,
        "expr": expr,
        "datasource": {"type": "prometheus", "uid": source},
        "intervalMs": 15_000,
        "maxDataPoints": 240,
    }
