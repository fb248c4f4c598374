"""Spec, settings and selection -> the files that Prometheus, Alertmanager and the exporters read at start."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from inferwatch.stack.settings import HOST, PORT_OFFSETS, Settings
from inferwatch.stack.state import Selection
from slo.names import labels, rag, traces
from slo.spec import Spec

RAG_SERVICE = "rag"
MAX_EXEMPLARS = 100_000
"""About a hundred bytes each, kept in memory."""
HEADER = "# Written by `inferwatch up`; changes are lost at the next one.\n"


@dataclass(frozen=True)
class Places:
    """
    Where one Prometheus finds its parts; the native stack and docker compose differ in nothing else.

    Attributes:
        addresses: host:port by service of the stack.
        rules: glob of the rule files.
        engines: the file_sd file of the engines.
        nodes: the file_sd file of the node agents, where there may be some.
        loads: the file_sd file of load runs under way, where there may be some.
        drift: the file_sd files of drift exporters, where there may be some.
        rag: the file_sd file of RAG services, where there may be some.
        traced: whether a collector runs at the addresses ``collector-self`` and ``collector-spans``.
        joined: glob of rules over what Loki writes into Prometheus, where there is a Loki.
        sampled: whether a second one samples, at ``sampler-self``, with the watcher of firing models at ``firing``.
    """

    addresses: Mapping[str, str]
    rules: str
    engines: str
    nodes: str | None = None
    loads: str | None = None
    drift: str | None = None
    rag: str | None = None
    traced: bool = False
    sampled: bool = False
    joined: str | None = None


def native_places(settings: Settings, *, traced: bool = False) -> Places:
    """Everything on loopback, rules as `up` wrote them."""
    return Places(
        addresses={service: settings.url(service).removeprefix("http://") for service in PORT_OFFSETS},
        rules=str(settings.rules_dir / "*.yaml"),
        engines=str(settings.targets_file),
        loads=str(settings.loads_file),
        drift=str(settings.drift_file.with_name("drift*.json")),
        rag=str(settings.rag_file) if traced else None,
        traced=traced,
        sampled=traced and settings.environment == "production",
    )


def prometheus_config(spec: Spec, settings: Settings, *, traced: bool = False) -> dict[str, Any]:
    """Prometheus' configuration for the native stack, all on loopback; with the collector where *traced*."""
    return prometheus_config_at(spec, native_places(settings, traced=traced))


def prometheus_config_at(spec: Spec, places: Places) -> dict[str, Any]:
    """Prometheus' configuration for parts that are found at *places*."""
    intervals = spec.intervals
    return {
        "global": {
            "scrape_interval": f"{intervals.scrape_seconds:g}s",
            "scrape_timeout": f"{intervals.scrape_timeout_seconds:g}s",
            "evaluation_interval": f"{intervals.evaluation_seconds:g}s",
        },
        "rule_files": [places.rules, *([places.joined] if places.joined else [])],
        **({"storage": {"exemplars": {"max_exemplars": MAX_EXEMPLARS}}} if places.traced else {}),
        "alerting": {
            "alertmanagers": [{"static_configs": [{"targets": [places.addresses["alertmanager"]]}]}]
        },
        "scrape_configs": [
            _engine_job(places),
            {**_own_job(places, labels.JOB_CANARY, "exporter-canary"), "honor_labels": True},
            _own_job(places, labels.JOB_ENGINE_EXPORTER, "exporter-engine"),
            *_analysis_jobs(places),
            _own_job(places, labels.JOB_PROMETHEUS, "prometheus"),
            _own_job(places, labels.JOB_ALERTMANAGER, "alertmanager"),
            *_node_jobs(places),
            *_load_jobs(places),
            *_drift_jobs(places),
            *_trace_jobs(places),
        ],
    }


def _own_job(places: Places, job: str, service: str) -> dict[str, Any]:
    return {"job_name": job, "static_configs": [{"targets": [places.addresses[service]]}]}


def _engine_job(places: Places) -> dict[str, Any]:
    """One probe an engine: the engine's URL goes to ?target= and to `instance`, the exporter is what is called."""
    return {
        "job_name": labels.JOB_ENGINE,
        "metrics_path": "/probe",
        "file_sd_configs": [{"files": [places.engines], "refresh_interval": "5s"}],
        "relabel_configs": [
            {"source_labels": ["__address__"], "target_label": "__param_target"},
            {"source_labels": ["__param_target"], "target_label": labels.INSTANCE},
            {"target_label": "__address__", "replacement": places.addresses["exporter-engine"]},
        ],
    }


def direct_job(targets: Path) -> dict[str, Any]:
    """Engines that Prometheus reads itself, HOST:PORT with their label `service` in the file_sd file *targets*."""
    return {
        "job_name": labels.JOB_DIRECT,
        "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "5s"}],
    }


def _analysis_jobs(places: Places) -> list[dict[str, Any]]:
    """The analysis exporter, where one runs; its series say themselves which service and model they are of."""
    if "exporter-analysis" not in places.addresses:
        return []
    return [{**_own_job(places, labels.JOB_ANALYSIS, "exporter-analysis"), "honor_labels": True}]


def _node_jobs(places: Places) -> list[dict[str, Any]]:
    """The node agents; its engine series carry the engine's instance already."""
    if "exporter-node" in places.addresses:
        return [{**_own_job(places, labels.JOB_NODE, "exporter-node"), "honor_labels": True}]
    if places.nodes is None:
        return []
    return [
        {
            "job_name": labels.JOB_NODE,
            "honor_labels": True,
            "file_sd_configs": [{"files": [places.nodes], "refresh_interval": "5s"}],
        }
    ]


def _load_jobs(places: Places) -> list[dict[str, Any]]:
    """Load runs while they go on; `inferwatch load` puts itself into the file and takes itself out."""
    if places.loads is None:
        return []
    return [
        {
            "job_name": labels.JOB_LOAD,
            "file_sd_configs": [{"files": [places.loads], "refresh_interval": "5s"}],
        }
    ]


def _drift_jobs(places: Places) -> list[dict[str, Any]]:
    """Drift exporters, our own and those that a person runs; their targets carry the service."""
    if places.drift is None:
        return []
    return [
        {
            "job_name": labels.JOB_DRIFT,
            "file_sd_configs": [{"files": [places.drift], "refresh_interval": "5s"}],
        }
    ]


def _trace_jobs(places: Places) -> list[dict[str, Any]]:
    """The collector, what it makes of spans (with exemplars, under their own labels), and RAG services."""
    jobs: list[dict[str, Any]] = []
    if places.traced:
        collectors = ["collector-self", *(["sampler-self"] if places.sampled else [])]
        targets = [places.addresses[name] for name in collectors]
        jobs.append({"job_name": rag.JOB_COLLECTOR, "static_configs": [{"targets": targets}]})
        jobs.append({**_own_job(places, rag.JOB_SPANS, "collector-spans"), "honor_labels": True})
    if places.sampled:
        jobs.append(_own_job(places, traces.JOB_FIRING, "firing"))
    if places.rag is not None:
        watched = [{"files": [places.rag], "refresh_interval": "5s"}]
        jobs.append({"job_name": rag.JOB_RAG, "file_sd_configs": watched})
    return jobs


def load_targets(service: str, port: int) -> list[dict[str, Any]]:
    """A load run's live series on a loopback *port* in file_sd form."""
    return [{"targets": [f"{HOST}:{port}"], "labels": {labels.SERVICE: service}}]


def rag_targets(settings: Settings) -> list[dict[str, Any]]:
    """The stack's RAG service in file_sd form; its service is the one that its spans name."""
    return [{"targets": [f"{HOST}:{settings.port('rag')}"], "labels": {labels.SERVICE: RAG_SERVICE}}]


def drift_targets(settings: Settings, selection: Selection) -> list[dict[str, Any]]:
    """Our own drift exporter in file_sd form; none where nobody wrote its configuration."""
    if not settings.drift_config.is_file():
        return []
    address = f"{HOST}:{settings.port('exporter-drift')}"
    return [{"targets": [address], "labels": {labels.SERVICE: selection.service}}]


def engine_targets(selection: Selection) -> list[dict[str, Any]]:
    """The engines in file_sd form; the exporter's canary reads the same file."""
    return [{"targets": list(selection.urls), "labels": {labels.SERVICE: selection.service}}]


def write_yaml(path: Path, value: Mapping[str, Any]) -> None:
    """Write *value* with a header that says who wrote it."""
    write_text(path, HEADER + yaml.safe_dump(dict(value), sort_keys=False, width=110))


def write_json(path: Path, value: object) -> None:
    """Write *value*; readers that watch the file never see half of it."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Replace *path* at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".tmp")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
