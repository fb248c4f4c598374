"""Options, spec and checkout -> file name -> objects, and the kustomization that lists them."""

import json
from pathlib import Path

import yaml

from inferwatch.export import monitoring, workloads
from inferwatch.export.options import Cluster
from inferwatch.export.workloads import Object, metadata
from inferwatch.stack.errors import StackError
from slo.spec import Spec

HEADER = "# Written by `inferwatch export k8s`; run it again rather than change this.\n"
KUSTOMIZATION = "kustomization.yaml"
DASHBOARD_LABEL = {"grafana_dashboard": "1"}
DASHBOARD_FOLDER = {"grafana_folder": "Inferwatch"}
# A ConfigMap's limit, less what the object around the data takes.
MOST_BYTES = 1_000_000


def manifests(spec: Spec, spec_text: str, dashboards: Path, cluster: Cluster) -> dict[str, list[Object]]:
    """Every file but the kustomization; StackError where nothing would be watched or an object is too large."""
    if not cluster.engines and cluster.pods is None:
        raise StackError("name what to watch: --engine URL, or --pods key=value")
    if cluster.service not in {service.id for service in spec.services}:
        raise StackError(f"slo.yaml has no service {cluster.service!r}; add it, or choose one with --service")
    parts = workloads.parts(spec_text, cluster)
    files = {f"{part.name}.yaml": _part(part, spec, cluster) for part in parts}
    files["rules.yaml"] = monitoring.rules(spec, cluster)
    files["engines.yaml"] = [*monitoring.probes(spec, cluster), *monitoring.pods(spec, cluster)]
    files["dashboards.yaml"] = _dashboards(dashboards, cluster)
    if parts:
        files["network.yaml"] = workloads.network_policies(cluster, spec)
    return files


def _part(part: workloads.Part, spec: Spec, cluster: Cluster) -> list[Object]:
    return [*workloads.objects(part, cluster), monitoring.monitor(part, spec, cluster)]


def _dashboards(folder: Path, cluster: Cluster) -> list[Object]:
    found = []
    for file in sorted(folder.glob("*.json")):
        text = json.dumps(json.loads(file.read_text(encoding="utf-8")), separators=(",", ":"))
        if len(text.encode()) > MOST_BYTES:
            raise StackError(
                f"{file}: {len(text.encode())} bytes do not fit into a ConfigMap; split the dashboard"
            )
        own = metadata(file.stem, cluster, labels=DASHBOARD_LABEL, annotations=DASHBOARD_FOLDER)
        found.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": own, "data": {file.name: text}})
    return found


def write(files: dict[str, list[Object]], cluster: Cluster, out: Path) -> list[Path]:
    """Write all files and the kustomization into *out*, which must be empty or hold an earlier export."""
    known = {*files, KUSTOMIZATION}
    if out.exists() and (strange := sorted(p.name for p in out.iterdir() if p.name not in known)):
        raise StackError(f"{out} holds {strange[0]}, which is no file of this export; choose an empty folder")
    out.mkdir(parents=True, exist_ok=True)
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": cluster.namespace,
        "resources": sorted(files),
    }
    texts = {name: _text(objects) for name, objects in files.items()} | {
        KUSTOMIZATION: _text([kustomization])
    }
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    return [out / name for name in sorted(texts)]


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks, so that rules and files can be read; no anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _block(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _block)


def _text(objects: list[Object]) -> str:
    return HEADER + yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=True)
