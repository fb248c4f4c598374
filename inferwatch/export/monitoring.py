"""The spec -> the operator's objects: rules, probes of engines, monitors of our own parts."""

from pathlib import PurePath
from typing import Any

import yaml

from inferwatch.export.options import Cluster, Pods
from inferwatch.export.workloads import Object, Part, metadata
from slo.names import labels
from slo.spec import Spec

V1, V1ALPHA1 = "monitoring.coreos.com/v1", "monitoring.coreos.com/v1alpha1"


def rules(spec: Spec, cluster: Cluster) -> list[Object]:
    """One PrometheusRule for each generated rule file."""
    from alerts import render

    found = []
    for path, text in render.files(spec).items():
        if path.startswith(render.RULES):
            name = f"inferwatch-{PurePath(path).stem}"
            groups = yaml.safe_load(text)["groups"]
            found.append(_object(V1, "PrometheusRule", name, cluster, {"groups": groups}))
    return found


def _object(version: str, kind: str, name: str, cluster: Cluster, spec: Object) -> Object:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": metadata(name, cluster, labels=cluster.selectors),
        "spec": spec,
    }


def _times(spec: Spec) -> dict[str, str]:
    intervals = spec.intervals
    return {
        "interval": f"{intervals.scrape_seconds:g}s",
        "scrapeTimeout": f"{intervals.scrape_timeout_seconds:g}s",
    }


def probes(spec: Spec, cluster: Cluster) -> list[Object]:
    """Engines with a fixed name: the exporter is asked for each of them."""
    if not cluster.engines:
        return []
    wanted = {
        "jobName": labels.JOB_ENGINE,
        "prober": {"url": f"exporter-engine.{cluster.namespace}.svc:9480", "path": "/probe"},
        **_times(spec),
        "targets": {
            "staticConfig": {"static": list(cluster.engines), "labels": {labels.SERVICE: cluster.service}}
        },
    }
    return [_object(V1, "Probe", "inferwatch-engines", cluster, wanted)]


def pods(spec: Spec, cluster: Cluster) -> list[Object]:
    """Engines that come and go: each pod through the exporter, or scraped itself."""
    if cluster.pods is None:
        return []
    return [
        _pod_monitor(spec, cluster, cluster.pods)
        if cluster.direct
        else _scrape_config(spec, cluster, cluster.pods)
    ]


def _scrape_config(spec: Spec, cluster: Cluster, chosen: Pods) -> Object:
    key = "".join(c if c.isalnum() else "_" for c in chosen.key)
    wanted = {
        "jobName": labels.JOB_ENGINE,
        "metricsPath": "/probe",
        "scrapeInterval": _times(spec)["interval"],
        "scrapeTimeout": _times(spec)["scrapeTimeout"],
        "kubernetesSDConfigs": [{"role": "Pod", "namespaces": {"names": [chosen.namespace]}}],
        "relabelings": [
            {"sourceLabels": [f"__meta_kubernetes_pod_label_{key}"], "regex": chosen.value, "action": "keep"},
            # One that waits for a node, or was evicted, is no engine that is down. Not by readiness: an engine that
            # hangs would leave with it.
            {"sourceLabels": ["__meta_kubernetes_pod_phase"], "regex": "Running", "action": "keep"},
            # A pod is listed once for each of its ports; one of them is the engine.
            {
                "sourceLabels": ["__meta_kubernetes_pod_container_port_number"],
                "regex": str(chosen.port),
                "action": "keep",
            },
            {
                "sourceLabels": ["__meta_kubernetes_pod_ip"],
                "targetLabel": "__param_target",
                "replacement": f"http://$1:{chosen.port}",
            },
            {"sourceLabels": ["__param_target"], "targetLabel": labels.INSTANCE},
            {"targetLabel": labels.SERVICE, "replacement": cluster.service},
            {"targetLabel": "__address__", "replacement": f"exporter-engine.{cluster.namespace}.svc:9480"},
        ],
    }
    return _object(V1ALPHA1, "ScrapeConfig", "inferwatch-engine-pods", cluster, wanted)


def _pod_monitor(spec: Spec, cluster: Cluster, chosen: Pods) -> Object:
    wanted = {
        "selector": {"matchLabels": {chosen.key: chosen.value}},
        "namespaceSelector": {"matchNames": [chosen.namespace]},
        # Prometheus 3 refuses a page without a content type it knows; a proxy in between may drop it.
        "fallbackScrapeProtocol": "PrometheusText0.0.4",
        "podMetricsEndpoints": [
            {
                "portNumber": chosen.port,
                "path": "/metrics",
                **_times(spec),
                "relabelings": [
                    {"targetLabel": "job", "replacement": labels.JOB_DIRECT},
                    {"targetLabel": labels.SERVICE, "replacement": cluster.service},
                ],
                "metricRelabelings": [
                    {"sourceLabels": ["__name__"], "regex": ".*_created", "action": "drop"},
                    {"sourceLabels": ["__name__"], "regex": "vllm:lora_requests_info", "action": "drop"},
                ],
            }
        ],
    }
    return _object(V1, "PodMonitor", "inferwatch-engine-pods", cluster, wanted)


JOBS: dict[str, tuple[str, bool]] = {
    "exporter-engine": (labels.JOB_ENGINE_EXPORTER, False),
    "exporter-canary": (labels.JOB_CANARY, True),
}
"""Part -> the job that rules know it by, and whether its own labels win over the target's."""


def monitor(part: Part, spec: Spec, cluster: Cluster) -> Object:
    """A part's own metrics, from each of its replicas."""
    job, honors = JOBS[part.name]
    endpoint: dict[str, Any] = {
        "port": "metrics",
        **_times(spec),
        "honorLabels": honors,
        "relabelings": [{"targetLabel": "job", "replacement": job}],
    }
    wanted = {
        "selector": {"matchLabels": {"app.kubernetes.io/name": part.name}},
        "endpoints": [endpoint],
    }
    return _object(V1, "ServiceMonitor", part.name, cluster, wanted)
