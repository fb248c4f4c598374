"""What the export's tests share: a cluster, its manifests, and the schemas they are held against."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from inferwatch.export.options import Cluster, Pods

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "k8s"
Validators = dict[str, list[Callable[[Any], Any]]]


@pytest.fixture
def cluster() -> Cluster:
    """One engine behind a Service, and pods that come and go."""
    return Cluster(
        image="registry.example/inferwatch:1",
        namespace="inferwatch",
        monitoring_namespace="monitoring",
        service="llm",
        engines=("http://vllm.models:8000",),
        pods=Pods("app", "vllm", "models", 8000, "10.244.0.0/16"),
        direct=False,
        selectors={"release": "prometheus"},
    )


@pytest.fixture(scope="session")
def validators() -> Validators:
    """By kind: the schema of the Go type, and for the operator's kinds also its own OpenAPI schema."""
    found: Validators = {}
    for name in ("types.json.gz", "operator-0.85.0-openapi.json.gz"):
        # Go lets a flag stand after ^, Python only in front.
        text = gzip.decompress((FIXTURES / name).read_bytes()).decode().replace('"^(?i)', '"(?i)^')
        for kind, schema in json.loads(text).items():
            found.setdefault(kind, []).append(fastjsonschema.compile(schema))
    return found
