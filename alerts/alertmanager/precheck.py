"""alertmanager.yml -> what would fail only when the first alert is sent; run before Alertmanager starts."""

import re
from pathlib import Path

import yaml

_PLACEHOLDER = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[A-Z_][A-Z0-9_]+\b")
_FILE_KEYS = ("url_file", "api_url_file", "routing_key_file", "service_key_file", "auth_password_file")


def faults(path: Path) -> list[str]:
    """Return a line a fault: placeholders that nobody fills in, secret files that are missing or empty.

    Alertmanager does not expand ${VAR}: the literal would go out as the URL. Values are never shown.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        return [f"{path}: cannot be read: {error.strerror}; write it with `python -m alerts`"]
    except yaml.YAMLError as error:
        return [f"{path}: not valid YAML: {' '.join(str(error).split())}; correct it"]
    return [f"{path}: {fault}" for fault in _walk(content, path.parent, "")]


def _walk(node: object, folder: Path, place: str) -> list[str]:
    if isinstance(node, dict):
        return [f for k, v in node.items() for f in _walk(v, folder, f"{place}.{k}" if place else str(k))]
    if isinstance(node, list):
        return [f for n, v in enumerate(node) for f in _walk(v, folder, f"{place}[{n}]")]
    if not isinstance(node, str):
        return []
    found = [
        f"{place}: {name} is not expanded by Alertmanager; put the secret into a file and refer to it "
        "(api_url_file, url_file, ...)"
        for name in _PLACEHOLDER.findall(node)
    ]
    if place.rpartition(".")[2] in _FILE_KEYS:
        found += _file_faults(folder / node, place)
    return found


def _file_faults(secret: Path, place: str) -> list[str]:
    try:
        empty = not secret.read_text(encoding="utf-8").strip()
    except OSError as error:
        return [f"{place}: {secret}: cannot be read: {error.strerror}; create it or remove the receiver"]
    return [f"{place}: {secret}: is empty; write the secret into it"] if empty else []
