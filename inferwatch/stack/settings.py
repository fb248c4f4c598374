"""Where the launcher works: the checkout, the run folder, the cache and the loopback ports of one stack."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from inferwatch.stack.errors import StackError
from inferwatch.stack.versions import Pins
from inferwatch.stack.versions import load as load_pins

HOST = "127.0.0.1"
DEFAULT_BASE_PORT = 19000
ENVIRONMENTS = ("production", "staging")
# Port of each service, counted from the base port.
PORT_OFFSETS: Mapping[str, int] = {
    "engine": 0,
    "engine-control": 1,
    "dashboards": 80,
    "prometheus": 90,
    "alertmanager": 93,
    "receiver": 95,
    "exporter-engine": 101,
    "exporter-canary": 102,
    "exporter-node": 103,
    "exporter-analysis": 104,
    "exporter-drift": 105,
    "rag": 110,
    "otlp-grpc": 117,
    "otlp-http": 118,
    "collector": 133,
    "collector-self": 188,
    "collector-spans": 189,
    "firing": 120,
    "sampler": 134,
    "sampler-grpc": 127,
    "sampler-http": 128,
    "sampler-self": 190,
    "sampler-spans": 191,
    "jaeger": 186,
    "jaeger-grpc": 185,
    "jaeger-otlp": 187,
    "jaeger-health": 183,
    "jaeger-self": 184,
}


@dataclass(frozen=True)
class Settings:
    """
    Places and ports of one stack.

    Attributes:
        root: the checkout, absolute.
        run_dir: state, logs and data of this stack (``.inferwatch`` in the checkout unless told).
        cache_dir: built binaries and virtual environments, shared by all checkouts of this user.
        base_port: the first of the ports that PORT_OFFSETS counts from.
        spec_path: the slo.yaml in force.
        environment: what the collector keeps of traces: all in ``staging``, the interesting ones in ``production``.
    """

    root: Path
    run_dir: Path
    cache_dir: Path
    spec_path: Path
    base_port: int = DEFAULT_BASE_PORT
    environment: str = "staging"

    def port(self, service: str) -> int:
        """Port of a service of ours."""
        return self.base_port + PORT_OFFSETS[service]

    def url(self, service: str) -> str:
        """Base URL of a service of ours."""
        return f"http://{HOST}:{self.port(service)}"

    def pins(self) -> Pins:
        """Pinned versions of this checkout."""
        return load_pins(self.root / ".env")

    @property
    def state_file(self) -> Path:
        """Which engine was chosen and which processes are ours."""
        return self.run_dir / "state.json"

    @property
    def logs_dir(self) -> Path:
        """One log file a service."""
        return self.run_dir / "logs"

    @property
    def data_dir(self) -> Path:
        """One folder a service that keeps data."""
        return self.run_dir / "data"

    @property
    def config_dir(self) -> Path:
        """Rendered configuration."""
        return self.run_dir / "config"

    @property
    def prometheus_config(self) -> Path:
        """Rendered for the native stack."""
        return self.config_dir / "prometheus.yml"

    @property
    def alertmanager_config(self) -> Path:
        """Rendered with the local receiver."""
        return self.config_dir / "alertmanager.yml"

    @property
    def rules_dir(self) -> Path:
        """Rules with this stack's links; the latency of engines that are only observed notifies nobody."""
        return self.config_dir / "rules"

    @property
    def accepted_file(self) -> Path:
        """Services whose latency thresholds a person accepted for engines that were attached."""
        return self.run_dir / "accepted.json"

    @property
    def secrets_dir(self) -> Path:
        """Files that switch on further ways of notification; empty unless the person fills it."""
        return self.run_dir / "secrets"

    @property
    def exporter_config(self) -> Path:
        """Which engines the engine exporter may read."""
        return self.config_dir / "exporter-engine.yml"

    @property
    def targets_file(self) -> Path:
        """Engines to watch, in Prometheus' file_sd form."""
        return self.run_dir / "targets" / "engines.json"

    @property
    def drift_file(self) -> Path:
        """Drift exporters that a person runs, in Prometheus' file_sd form; a person writes it."""
        return self.run_dir / "targets" / "drift.json"

    @property
    def own_drift_file(self) -> Path:
        """The stack's own drift exporter in the same form; empty without drift_config."""
        return self.run_dir / "targets" / "drift-own.json"

    @property
    def drift_config(self) -> Path:
        """What the stack's own drift exporter reads; a person writes it, and without it there is none."""
        return self.run_dir / "drift.yml"

    @property
    def loads_file(self) -> Path:
        """Load runs under way that serve live series, in Prometheus' file_sd form."""
        return self.run_dir / "targets" / "loads.json"

    @property
    def rag_file(self) -> Path:
        """The RAG service to scrape, in Prometheus' file_sd form; empty where none was asked for."""
        return self.run_dir / "targets" / "rag.json"

    @property
    def firing_file(self) -> Path:
        """Models with a firing alert, a YAML list that the collector reads."""
        return self.run_dir / "targets" / "firing-models.yaml"

    @property
    def notifications_file(self) -> Path:
        """What the local webhook receiver got, one JSON object a line."""
        return self.run_dir / "notifications.jsonl"


def default_settings(
    *,
    run_dir: Path | None = None,
    base_port: int = DEFAULT_BASE_PORT,
    spec_path: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Settings:
    """Settings of this checkout; StackError when the package is not running from one."""
    root = Path(__file__).resolve().parent.parent.parent
    if not (root / "slo.yaml").is_file() or not (root / "alerts").is_dir():
        raise StackError(
            f"{root} is not a checkout of Inferwatch; the stack runs from one: git clone it and use `make up`"
        )
    if not 1024 <= base_port <= 65535 - max(PORT_OFFSETS.values()):
        raise StackError(f"base port {base_port}: choose one from 1024 to 65400")
    return Settings(
        root=root,
        run_dir=(run_dir or root / ".inferwatch").resolve(),
        cache_dir=cache_dir(environ),
        spec_path=(spec_path or root / "slo.yaml").resolve(),
        base_port=base_port,
        environment=_environment(environ),
    )


def _environment(environ: Mapping[str, str]) -> str:
    value = environ.get("INFERWATCH_ENVIRONMENT") or "staging"
    if value not in ENVIRONMENTS:
        raise StackError(f"INFERWATCH_ENVIRONMENT={value}: use {' or '.join(ENVIRONMENTS)}")
    return value


def cache_dir(environ: Mapping[str, str]) -> Path:
    """``$XDG_CACHE_HOME/inferwatch``, or ``~/.cache/inferwatch``."""
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "inferwatch"
