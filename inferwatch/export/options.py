"""What a person says of their cluster -> frozen options, checked before anything is written."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from inferwatch.stack.errors import StackError

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_IMAGE = re.compile(r"[\w.-]+(:\d+)?(/[\w.-]+)*(:[\w.-]{1,128})?(@sha256:[0-9a-f]{64})?", re.ASCII)
_LABEL = re.compile(r"(?P<key>[A-Za-z0-9][A-Za-z0-9._/-]*)=(?P<value>[A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass(frozen=True)
class Pods:
    """Engine pods that the cluster discovers: one label, their namespace, their port, their addresses."""

    key: str
    value: str
    namespace: str
    port: int
    cidr: str


@dataclass(frozen=True)
class Cluster:
    """
    Where the manifests go and what they watch.

    Attributes:
        image: our image as the cluster pulls it.
        monitoring_namespace: where Prometheus runs; only it may scrape.
        engines: base URLs, each with a fixed name, such as a Service's.
        pods: engines without one.
        direct: scrape the pods themselves, not through the engine exporter.
        selectors: labels that the operator's Prometheus picks rules and monitors by.
        replicas: of each exporter and of the canary.
    """

    image: str
    namespace: str
    monitoring_namespace: str
    service: str
    engines: tuple[str, ...]
    pods: Pods | None
    direct: bool
    selectors: dict[str, str]
    replicas: int = 2

    def ports(self) -> list[int]:
        """Ports of all engines, for what may leave our pods."""
        found = {
            urlsplit(url).port or {"http": 80, "https": 443}[urlsplit(url).scheme] for url in self.engines
        }
        return sorted(found | ({self.pods.port} if self.pods else set()))

    def allowed(self) -> list[dict[str, Any]]:
        """The exporter's allow-list."""
        from inferwatch.stack.files import allowed_targets
        from inferwatch.stack.state import Selection

        entries = allowed_targets(Selection("urls", self.engines, self.service))
        if self.pods:
            entries.append({"scheme": "http", "host": self.pods.cidr, "ports": [self.pods.port]})
        return entries


def require_name(text: str, what: str) -> str:
    """A DNS label, as Kubernetes names namespaces; StackError otherwise."""
    if not _NAME.fullmatch(text):
        raise StackError(f"{what} {text!r}: small letters, digits and dashes only, 63 at most")
    return text


def require_image(text: str) -> str:
    """An image's name as a cluster pulls it; StackError otherwise."""
    if not _IMAGE.fullmatch(text):
        raise StackError(f"--image {text!r}: write it as [HOST[:PORT]/]NAME[:TAG][@DIGEST], without spaces")
    return text


def parse_label(text: str, what: str) -> tuple[str, str]:
    """`key=value`; StackError otherwise."""
    match = _LABEL.fullmatch(text)
    if match is None:
        raise StackError(f"{what} {text!r}: write key=value, for example app=vllm")
    return match["key"], match["value"]


def parse_pods(label: str, namespace: str, port: int, cidr: str | None) -> Pods:
    """Options of discovered pods; StackError for what cannot be used."""
    key, value = parse_label(label, "--pods")
    if cidr is None:
        raise StackError("--pods needs --pods-cidr, the addresses of pods, for the exporter's allow-list")
    try:
        ipaddress.ip_network(cidr)
    except ValueError as error:
        raise StackError(f"--pods-cidr {cidr!r}: {error}; write for example 10.244.0.0/16") from None
    return Pods(key, value, require_name(namespace, "--pods-namespace"), port, cidr)
