"""What is known of each image: its user, whose the folders are that volumes cover, what a health check can call.

Read in the images' own build files; nothing here could be run, so `compose-check` says so.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Image:
    """
    Facts of one image.

    Attributes:
        uid: who runs unless told otherwise.
        folders: path -> (uid, gid, mode); an empty named volume laid over it takes these.
        commands: what a health check may call.
    """

    uid: int
    commands: frozenset[str]
    folders: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)

    def owner(self, folder: str) -> tuple[int, int, int]:
        """uid, gid and mode of an empty volume that is laid over *folder*."""
        return self.folders[folder]


FOREIGN: Mapping[str, Image] = {
    "prom/prometheus": Image(
        65534, frozenset({"/bin/promtool", "wget"}), {"/prometheus": (65534, 65534, 0o755)}
    ),
    "prom/alertmanager": Image(
        65534, frozenset({"/bin/amtool", "wget"}), {"/alertmanager": (65534, 65534, 0o755)}
    ),
    "grafana/grafana": Image(472, frozenset({"wget", "sh"}), {"/var/lib/grafana": (472, 0, 0o777)}),
    # No shell and nothing to call: what runs from these two has no health check.
    "otel/opentelemetry-collector-contrib": Image(10001, frozenset()),
    "jaegertracing/jaeger": Image(10001, frozenset()),
    "grafana/loki": Image(10001, frozenset()),
    "vllm/vllm-openai": Image(0, frozenset({"python3", "sh"})),
}
OURS = ("inferwatch", "inferwatch-vllm-cpu", "inferwatch-rag")
_INSTALL = re.compile(r"install -d -o (\d+) -g (\d+) -m (\d+) ([^&\\\n]+)")


def known(dockerfile: Path) -> dict[str, Image]:
    """Facts by repository; those of our own images are read from *dockerfile*."""
    folders = {
        folder: (int(match[1]), int(match[2]), int(match[3], 8))
        for match in _INSTALL.finditer(dockerfile.read_text(encoding="utf-8"))
        for folder in match[4].split()
    }
    own = Image(10001, frozenset({"python", "sh"}), folders)
    return {**FOREIGN, **dict.fromkeys(OURS, own)}
