"""`python -m inferwatch.compose.init`: environment and secret files -> passwords and what the containers read.

Runs once before the other containers start, in our image, as a user without rights.
"""

import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from inferwatch.stack import config, files, selection
from inferwatch.stack.errors import StackError
from inferwatch.stack.state import Selection
from slo import spec as slo_spec
from slo.names import labels
from slo.spec import Spec

PASSWORDS = ("grafana_admin_password", "drift_ingest_token")
PASSWORD_BYTES = 24
# Beside the person's secret files; neither is a secret.
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*:\d{1,5}")
NO_SECRETS = frozenset({"README.md", ".gitignore"})


@dataclass(frozen=True)
class Folders:
    """Where the container has its volumes, and what Alertmanager calls the receiver and its templates."""

    config: Path = Path("/etc/inferwatch")
    secrets: Path = Path("/run/inferwatch/secrets")
    notify: Path = Path("/run/notify")
    firing: Path = Path("/var/lib/firing/models.yaml")
    templates: str = "/etc/alertmanager/templates/*.tmpl"
    receiver: str = "http://receiver:9095/notify"


def prepare(spec: Spec, folders: Folders, environ: Mapping[str, str]) -> list[str]:
    """Write everything and return a line a thing done; StackError when something cannot be used."""
    made = [_password(folders.secrets / name) for name in PASSWORDS]
    copied = _copy_secrets(folders)
    chosen = _selection(spec, environ)
    config.write_json(folders.config / "targets" / "engines.json", config.engine_targets(chosen))
    config.write_json(folders.config / "targets" / "nodes.json", [])
    config.write_json(folders.config / "targets" / "drift.json", _drift_targets(chosen, environ))
    config.write_json(folders.config / "targets" / "rag.json", [])
    _firing_list(folders.firing)
    config.write_yaml(folders.config / "exporter-engine.yml", {"allow": files.allowed_targets(chosen)})
    config.write_text(folders.config / "alertmanager.yml", _alertmanager(spec, folders))
    return [
        *made,
        f"notification secrets: {', '.join(copied) or 'none; alerts go to the receiver only'}",
        f"engines: {', '.join(chosen.urls)} as service {chosen.service}",
    ]


def add_node(folders: Folders, address: str) -> str:
    """Tell Prometheus of a node agent at host:port."""
    target = [{"targets": [address], "labels": {}}]
    config.write_json(folders.config / "targets" / "nodes.json", target)
    return f"node agents: {address}"


def add_rag(folders: Folders, address: str) -> str:
    """Tell Prometheus of a RAG service at host:port."""
    target = [{"targets": [address], "labels": {labels.SERVICE: config.RAG_SERVICE}}]
    config.write_json(folders.config / "targets" / "rag.json", target)
    return f"RAG services: {address}"


def _password(path: Path) -> str:
    """Make the password unless it is there: it never changes by itself, and is never printed."""
    if path.is_file() and path.stat().st_size > 0:
        return f"{path.name}: kept"
    draft = path.with_suffix(".tmp")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o440)
    with os.fdopen(descriptor, "w", encoding="utf-8") as sink:
        sink.write(secrets.token_urlsafe(PASSWORD_BYTES))
    draft.replace(path)
    return f"{path.name}: made, in the volume `secrets`"


def _copy_secrets(folders: Folders) -> list[str]:
    """The person's files, where Alertmanager's group may read them; those taken away are removed there too."""
    target = folders.secrets / "notify"
    target.mkdir(mode=0o750, exist_ok=True)
    wanted = sorted(p for p in folders.notify.iterdir() if p.is_file() and p.name not in NO_SECRETS)
    for old in target.iterdir():
        old.unlink()
    for path in wanted:
        try:
            text = path.read_bytes().strip()
        except OSError as error:
            raise StackError(
                f"deploy/notify/{path.name}: user {os.geteuid()} cannot read it ({error.strerror}); "
                f"chown it to {os.geteuid()} with mode 0400"
            ) from error
        (target / path.name).write_bytes(text)
        (target / path.name).chmod(0o440)
    return [path.name for path in wanted]


def _firing_list(path: Path) -> None:
    """The sampler reads it at its start; the watcher rewrites it."""
    if not path.is_file():
        config.write_text(path, "[]\n")


def _selection(spec: Spec, environ: Mapping[str, str]) -> Selection:
    words = tuple(w.strip() for w in environ.get("INFERWATCH_ENGINES", "").split(",") if w.strip())
    service = environ.get("INFERWATCH_SERVICE") or spec.services[0].id
    if not words:
        raise StackError("INFERWATCH_ENGINES is empty; set it in .env, for example to http://engine:8000")
    if service not in {s.id for s in spec.services}:
        known = ", ".join(s.id for s in spec.services)
        raise StackError(f"INFERWATCH_SERVICE={service}: slo.yaml has no such service; it has {known}")
    return Selection("urls", selection.base_urls(words), service)


def _drift_targets(chosen: Selection, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """Drift exporters that a person runs, as host:port; their references are the person's, so none is shipped."""
    named = [w.strip() for w in environ.get("INFERWATCH_DRIFT", "").split(",") if w.strip()]
    if wrong := [address for address in named if not _ADDRESS.fullmatch(address)]:
        raise StackError(f"INFERWATCH_DRIFT: {wrong[0]!r} is not HOST:PORT; write for example drift:9483")
    return [{"targets": named, "labels": {labels.SERVICE: chosen.service}}] if named else []


def _alertmanager(spec: Spec, folders: Folders) -> str:
    from alerts.alertmanager import config as alertmanager
    from alerts.alertmanager.receivers import ReceiverError

    try:
        return alertmanager.render(
            spec,
            secrets_dir=folders.secrets / "notify",
            webhook_url=folders.receiver,
            templates=folders.templates,
        )
    except ReceiverError as error:
        raise StackError(str(error)) from error


@click.command()
@click.option("--node", metavar="HOST:PORT", help="Only add this node agent to the targets.")
@click.option("--rag", metavar="HOST:PORT", help="Only add this RAG service to the targets.")
def main(node: str | None, rag: str | None) -> None:
    """Prepare the volumes of docker compose, or add a node agent or a RAG service to them."""
    try:
        if node or rag:
            lines = [add_node(Folders(), node)] if node else []
            lines += [add_rag(Folders(), rag)] if rag else []
        else:
            lines = prepare(slo_spec.load(), Folders(), os.environ)
    except (StackError, slo_spec.SpecError, OSError) as error:
        raise click.ClickException(str(error)) from error
    for line in lines:
        click.echo(line)


if __name__ == "__main__":
    main()
