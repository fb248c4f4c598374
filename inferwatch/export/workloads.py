"""Options -> Deployments, Services, budgets, configuration and network policies of our own parts."""

from dataclasses import dataclass
from typing import Any

import yaml

from inferwatch.export.options import Cluster
from slo.spec import Spec

Object = dict[str, Any]
PART_OF = "inferwatch"
UID = 10001
# From `make compose-check`: exporters peak at about 50 MiB.
REQUEST, LIMIT = {"cpu": "50m", "memory": "64Mi"}, {"memory": "256Mi"}
DNS_PORT = 53


@dataclass(frozen=True)
class Part:
    """One Deployment: its name, its command after `python -m`, its port, its configuration files."""

    name: str
    words: tuple[str, ...]
    port: int
    files: dict[str, str]


def parts(spec_text: str, cluster: Cluster) -> list[Part]:
    """What runs in the cluster: the engine exporter, unless pods are scraped directly, and the canary."""
    import json

    allow = yaml.safe_dump({"allow": cluster.allowed()}, sort_keys=False)
    targets = [{"targets": list(cluster.engines), "labels": {"service": cluster.service}}]
    exporter = Part(
        "exporter-engine",
        ("exporters", "engine", "--listen", "0.0.0.0:9480", "--config", "/etc/inferwatch/engine.yml"),
        9480,
        {"engine.yml": allow},
    )
    canary = Part(
        "exporter-canary",
        (
            *("exporters", "canary", "--listen", "0.0.0.0:9482", "--config", "/etc/inferwatch/engine.yml"),
            *("--spec", "/etc/inferwatch/slo.yaml", "--targets", "/etc/inferwatch/engines.json"),
        ),
        9482,
        {"engine.yml": allow, "slo.yaml": spec_text, "engines.json": json.dumps(targets, indent=2) + "\n"},
    )
    through_exporter = cluster.engines or (cluster.pods and not cluster.direct)
    return [*([exporter] if through_exporter else []), *([canary] if cluster.engines else [])]


def objects(part: Part, cluster: Cluster) -> list[Object]:
    """Everything of one part."""
    found = [_config(part, cluster), _deployment(part, cluster), _service(part, cluster)]
    return [*found, _budget(part, cluster)] if cluster.replicas > 1 else found


def metadata(name: str, cluster: Cluster, **more: Any) -> Object:
    """Name, namespace and the labels that everything of ours carries."""
    own = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": PART_OF}
    return {"name": name, "namespace": cluster.namespace, "labels": own | more.pop("labels", {}), **more}


def _selector(name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": PART_OF}


def _config(part: Part, cluster: Cluster) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(part.name, cluster),
        "data": part.files,
    }


def _deployment(part: Part, cluster: Cluster) -> Object:
    from hashlib import sha256

    digest = sha256(repr(sorted(part.files.items())).encode()).hexdigest()[:16]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(part.name, cluster),
        "spec": {
            "replicas": cluster.replicas,
            "selector": {"matchLabels": _selector(part.name)},
            "template": {
                # The configuration is read at start: a change of it rolls the pods.
                "metadata": {"labels": _selector(part.name), "annotations": {"inferwatch/config": digest}},
                "spec": _pod(part, cluster),
            },
        },
    }


def _pod(part: Part, cluster: Cluster) -> Object:
    return {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": UID,
            "runAsGroup": UID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": _selector(part.name)},
            }
        ],
        "containers": [
            {
                "name": part.name,
                "image": cluster.image,
                "args": ["python", "-m", *part.words],
                "ports": [{"name": "metrics", "containerPort": part.port}],
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "resources": {"requests": REQUEST, "limits": LIMIT},
                "readinessProbe": {"httpGet": {"path": "/-/ready", "port": "metrics"}, "periodSeconds": 5},
                "livenessProbe": {"httpGet": {"path": "/-/healthy", "port": "metrics"}, "periodSeconds": 10},
                "volumeMounts": [
                    {"name": "config", "mountPath": "/etc/inferwatch", "readOnly": True},
                    {"name": "tmp", "mountPath": "/tmp"},
                ],
            }
        ],
        "volumes": [
            {"name": "config", "configMap": {"name": part.name}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    }


def _service(part: Part, cluster: Cluster) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(part.name, cluster),
        "spec": {
            "selector": _selector(part.name),
            "ports": [{"name": "metrics", "port": part.port, "targetPort": "metrics"}],
        },
    }


def _budget(part: Part, cluster: Cluster) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(part.name, cluster),
        "spec": {"minAvailable": 1, "selector": {"matchLabels": _selector(part.name)}},
    }


def network_policies(cluster: Cluster, spec: Spec) -> list[Object]:
    """Only the monitoring namespace may scrape our pods; they reach engines and DNS, nothing else."""
    dns = [{"protocol": protocol, "port": DNS_PORT} for protocol in ("UDP", "TCP")]
    engines = [{"protocol": "TCP", "port": port} for port in cluster.ports()]
    return [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": metadata("inferwatch", cluster),
            "spec": {
                "podSelector": {"matchLabels": {"app.kubernetes.io/part-of": PART_OF}},
                "policyTypes": ["Ingress", "Egress"],
                "ingress": [
                    {
                        "from": [
                            {
                                "namespaceSelector": {
                                    "matchLabels": {
                                        "kubernetes.io/metadata.name": cluster.monitoring_namespace
                                    }
                                }
                            }
                        ],
                        "ports": [{"protocol": "TCP", "port": "metrics"}],
                    }
                ],
                "egress": [{"ports": dns}, {"ports": engines}],
            },
        }
    ]
