"""Exported manifests: accepted by Kubernetes' and the operator's schemas, whole, hardened, and wired to each other."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest
import yaml
from click.testing import CliRunner

from inferwatch.commands import export as command
from inferwatch.export import k8s
from inferwatch.export.options import Cluster, Pods, parse_pods, require_image
from inferwatch.stack.errors import StackError
from slo import spec as slo_spec

from .conftest import Validators

ROOT = Path(__file__).resolve().parents[2]
DASHBOARDS = ROOT / "dashboards" / "json"
Object = dict[str, Any]


def exported(cluster: Cluster) -> dict[tuple[str, str], Object]:
    """(kind, name) -> object of the whole export."""
    files = k8s.manifests(slo_spec.load(), slo_spec.text(), DASHBOARDS, cluster)
    return {(o["kind"], o["metadata"]["name"]): o for objects in files.values() for o in objects}


@pytest.mark.parametrize("direct", [False, True])
def test_every_object_is_accepted_by_the_schemas(
    cluster: Cluster, validators: Validators, direct: bool
) -> None:
    """Each object validates against the Go type's schema and the operator's OpenAPI schema of its kind."""
    kinds = set()
    for (kind, _), found in exported(replace(cluster, direct=direct)).items():
        kinds.add(kind)
        for validate in validators[kind]:
            validate(found)

    operators = {"PrometheusRule", "Probe", "ServiceMonitor", "PodMonitor" if direct else "ScrapeConfig"}
    assert kinds == operators | {"ConfigMap", "Service", "Deployment", "NetworkPolicy", "PodDisruptionBudget"}
    assert all(len(validators[kind]) == 2 for kind in operators)


@pytest.mark.parametrize(
    ("kind", "break_it"),
    [
        ("PrometheusRule", lambda spec: spec["groups"][0].update(interval="5 seconds")),
        ("Probe", lambda spec: spec.update(jobname="x")),
        ("ScrapeConfig", lambda spec: spec["kubernetesSDConfigs"][0].update(role="Pods")),
        ("Deployment", lambda spec: spec["template"]["spec"].update(readOnlyRootFilesystem=True)),
    ],
)
def test_the_schemas_see_what_a_cluster_would_refuse(
    cluster: Cluster, validators: Validators, kind: str, break_it: Any
) -> None:
    """A wrong duration, an unknown field, a wrong enum value, a field at the wrong place: each is refused."""
    found = next(o for (k, _), o in exported(cluster).items() if k == kind)
    broken = json.loads(json.dumps(found))
    break_it(broken["spec"])

    def refuses(validate: Any) -> bool:
        try:
            validate(broken)
        except fastjsonschema.JsonSchemaException:
            return True
        return False

    assert any(refuses(validate) for validate in validators[kind])


def test_two_replicas_without_a_leader_hardened_and_spread(cluster: Cluster) -> None:
    """Exporter and canary run twice, non-root, read-only, without capabilities, token or free memory."""
    objects = exported(cluster)
    for name in ("exporter-engine", "exporter-canary"):
        spec = objects["Deployment", name]["spec"]
        pod = spec["template"]["spec"]
        (container,) = pod["containers"]
        assert spec["replicas"] == 2
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"] == {"memory": "256Mi"}
        assert objects["PodDisruptionBudget", name]["spec"]["minAvailable"] == 1


def test_monitors_give_the_jobs_and_labels_that_rules_ask_for(cluster: Cluster) -> None:
    """The probe is job llm-engine with label service; the canary keeps its own labels; pods go through the exporter."""
    objects = exported(cluster)
    probe = objects["Probe", "inferwatch-engines"]["spec"]
    canary = objects["ServiceMonitor", "exporter-canary"]["spec"]["endpoints"][0]
    pods = objects["ScrapeConfig", "inferwatch-engine-pods"]["spec"]

    assert probe["jobName"] == pods["jobName"] == "llm-engine"
    assert probe["targets"]["staticConfig"] == {
        "static": ["http://vllm.models:8000"],
        "labels": {"service": "llm"},
    }
    assert probe["prober"] == {"url": "exporter-engine.inferwatch.svc:9480", "path": "/probe"}
    assert (probe["interval"], probe["scrapeTimeout"]) == ("5s", "4s")
    assert canary["honorLabels"] is True
    assert canary["relabelings"] == [{"targetLabel": "job", "replacement": "llm-canary"}]
    assert {
        "sourceLabels": ["__meta_kubernetes_pod_ip"],
        "targetLabel": "__param_target",
        "replacement": "http://$1:8000",
    } in pods["relabelings"]


def test_pods_that_do_not_run_are_no_targets(cluster: Cluster) -> None:
    """Pending and failed ones would be engines that are down; one that is not ready may be one that hangs."""
    rules = exported(cluster)["ScrapeConfig", "inferwatch-engine-pods"]["spec"]["relabelings"]
    kept = {rule["sourceLabels"][0]: rule["regex"] for rule in rules if rule.get("action") == "keep"}

    assert kept["__meta_kubernetes_pod_phase"] == "Running"
    assert "__meta_kubernetes_pod_ready" not in kept


def test_direct_pods_are_the_job_that_direct_rules_map(cluster: Cluster) -> None:
    """Pods scraped without the exporter are job vllm-direct with label service, without _created and LoRA series."""
    direct = replace(cluster, engines=(), direct=True)
    objects = exported(direct)
    monitor = objects["PodMonitor", "inferwatch-engine-pods"]["spec"]
    (endpoint,) = monitor["podMetricsEndpoints"]

    assert (
        monitor["fallbackScrapeProtocol"] == "PrometheusText0.0.4"
    )  # case A24: a page without a content type
    assert {"targetLabel": "job", "replacement": "vllm-direct"} in endpoint["relabelings"]
    assert {"targetLabel": "service", "replacement": "llm"} in endpoint["relabelings"]
    assert {r["regex"] for r in endpoint["metricRelabelings"]} == {".*_created", "vllm:lora_requests_info"}
    assert not [name for kind, name in objects if kind == "Deployment"]


def test_the_exporter_may_read_the_chosen_engines_only(cluster: Cluster) -> None:
    """The allow-list names the Service's host and the pods' addresses; policies open those ports, DNS and scrapes."""
    objects = exported(cluster)
    allow = yaml.safe_load(objects["ConfigMap", "exporter-engine"]["data"]["engine.yml"])["allow"]
    policy = objects["NetworkPolicy", "inferwatch"]["spec"]

    assert allow == [
        {"scheme": "http", "host": "vllm.models", "ports": [8000]},
        {"scheme": "http", "host": "10.244.0.0/16", "ports": [8000]},
    ]
    assert policy["egress"][1] == {"ports": [{"protocol": "TCP", "port": 8000}]}
    assert policy["ingress"][0]["from"] == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    ]


def test_the_files_in_configmaps_are_those_that_the_programs_read(cluster: Cluster, tmp_path: Path) -> None:
    """The exporter's loader takes engine.yml, the spec's loader slo.yaml, the canary's parser engines.json."""
    from exporters.canary.targets import parse_targets
    from exporters.engine.config import load_config

    data = exported(cluster)["ConfigMap", "exporter-canary"]["data"]
    for name, text in data.items():
        (tmp_path / name).write_text(text)

    assert load_config(tmp_path / "engine.yml").allow[0].host == "vllm.models"
    assert slo_spec.load(tmp_path / "slo.yaml") == slo_spec.load()
    assert parse_targets(data["engines.json"], "engines.json")[0].address == "http://vllm.models:8000"


def test_dashboards_carry_the_sidecars_label(cluster: Cluster) -> None:
    """Each dashboard is a ConfigMap that Grafana's sidecar finds, with the dashboard unchanged in it."""
    objects = exported(cluster)
    files = sorted(DASHBOARDS.glob("*.json"))
    for file in files:
        found = objects["ConfigMap", file.stem]
        assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert json.loads(found["data"][file.name]) == json.loads(file.read_text())
    assert files


def test_the_command_writes_a_kustomization_of_all_files(tmp_path: Path) -> None:
    """Every written file is listed, a second run replaces it, and staging's intervals reach the probe."""
    out = tmp_path / "out"
    words = [
        "k8s",
        "--out",
        str(out),
        "--image",
        "i:1",
        "--engine",
        "http://e:8000",
        "--environment",
        "staging",
    ]
    for _ in range(2):
        answer = CliRunner().invoke(command.command, words)
        assert answer.exit_code == 0, answer.output
    listed = yaml.safe_load((out / "kustomization.yaml").read_text())["resources"]

    assert sorted(p.name for p in out.iterdir()) == sorted([*listed, "kustomization.yaml"])
    assert yaml.safe_load((out / "engines.yaml").read_text())["spec"]["interval"] == "15s"


@pytest.mark.parametrize(
    ("image", "good"),
    [
        ("inferwatch:0.1.0", True),
        ("registry.local:5000/team/inferwatch:0.1.0", True),
        ("inferwatch@sha256:" + "a" * 64, True),
        ("a b", False),
        ("", False),
        ("https://registry.local/inferwatch", False),
    ],
)
def test_an_image_is_a_name_that_a_cluster_can_pull(image: str, good: bool) -> None:
    """Host, port, tag and digest are; spaces and URLs are not."""
    if good:
        assert require_image(image) == image
        return
    with pytest.raises(StackError, match="--image"):
        require_image(image)


def test_what_cannot_be_exported_is_said(cluster: Cluster, tmp_path: Path) -> None:
    """Nothing to watch, an unknown service, a strange file in the way, pods without addresses."""
    with pytest.raises(StackError, match="name what to watch"):
        exported(replace(cluster, engines=(), pods=None))
    with pytest.raises(StackError, match="no service 'other'"):
        exported(replace(cluster, service="other"))
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(StackError, match=r"holds mine\.txt"):
        k8s.write({}, cluster, tmp_path)
    with pytest.raises(StackError, match="--pods needs --pods-cidr"):
        parse_pods("app=vllm", "models", 8000, None)
    assert parse_pods("app=vllm", "models", 8000, "10.0.0.0/8") == Pods(
        "app", "vllm", "models", 8000, "10.0.0.0/8"
    )
