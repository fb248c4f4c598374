"""A server and the load client's machine -> what a run was measured on, kept beside it, so that unlike runs are never compared."""

import hashlib
import json
import os
import platform
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from loadtests.plan import LoadPlan

IDENTITY_FILE = "identity.json"
_TIMEOUT_S = 3.0
_MAX_BYTES = 4 * 1024 * 1024
_CACHE_CONFIG = re.compile(r"^vllm[:_]cache_config_info\{(.*)\} ", re.MULTILINE)
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
# What a new version may change without becoming another thing to compare with: the version itself, and sizes
# that the engine works out from free memory at each start.
_MAY_DIFFER = frozenset(
    {
        "engine_version",
        "flags.num_gpu_blocks",
        "flags.num_cpu_blocks",
        "flags.engine",
        "flags.kv_cache_size_tokens",
        "flags.kv_cache_max_concurrency",
    }
)
# Parts of the plan that only say where and how the client connects, not what load the server gets.
_NOT_THE_LOAD = frozenset(
    {"base_url", "random_seed", "run_nonce", "token_file", "ca_file", "insecure", "headers"}
)


def collect(plan: LoadPlan, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """What the run is about to be measured on; parts the server does not tell are None.

    *labels* are the user's own words for what cannot be asked for (GPU, host, tensor parallel size). `machine` is
    the load client's: a server's is told by nothing but a label.
    """
    models = _get_json(plan, "/v1/models") or {}
    listed = models.get("data") or [{}]
    model = next((entry for entry in listed if entry.get("id") == plan.model), listed[0])
    version = _get_json(plan, "/version") or {}
    return {
        "machine": {"cpu": _cpu_model(), "cores": os.cpu_count(), "system": platform.system()},
        "engine": model.get("owned_by"),
        "engine_version": version.get("version"),
        "model": plan.model,
        "max_model_len": model.get("max_model_len"),
        "flags": _engine_flags(_get(plan, "/metrics")),
        "labels": labels or {},
        "load": _load_of(plan),
    }


def save(identity: dict[str, Any], folder: Path) -> None:
    """Keep the identity beside a run."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / IDENTITY_FILE).write_text(json.dumps(identity, indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> dict[str, Any] | None:
    """The identity kept beside a run; None when there is none."""
    try:
        found: dict[str, Any] = json.loads((folder / IDENTITY_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """What makes two runs incomparable, one line each.

    What both do not know counts as the same, but for flags: of those something must be known, if only by a label.
    """
    left, right = _flatten(one), _flatten(other)
    keys = sorted((left.keys() | right.keys()) - _MAY_DIFFER)
    lines = [
        f"{key}: {left.get(key)!r} against {right.get(key)!r}"
        for key in keys
        if left.get(key) != right.get(key)
    ]
    if not lines and tells_nothing(one) and tells_nothing(other):
        lines.append(
            "flags: neither engine tells its flags and no label does, so nobody knows if they are alike; "
            "measure both with --label KEY=VALUE"
        )
    return lines


def tells_nothing(identity: dict[str, Any]) -> bool:
    """True when neither the engine nor the user said how it was started."""
    return identity.get("flags") is None and not identity.get("labels")


def _load_of(plan: LoadPlan) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(plan.model_dump_json())
    for part, key in ((whole, "prompts_file"), (whole["arrival"], "trace_path")):
        part[key] = _content(part[key])
    return {key: value for key, value in whole.items() if key not in _NOT_THE_LOAD}


def _content(path: str | None) -> str | None:
    """What a file of the load holds, as a digest: where it lies makes no other load. Its full path where it is not here."""
    if path is None:
        return None
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return str(Path(path).absolute())


def _flatten(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, dict):
            flat |= _flatten(inner, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = inner
    return flat


def _engine_flags(metrics: str | None) -> dict[str, str] | None:
    """Labels of vLLM's cache_config_info: block size, cache type, prefix caching, …"""
    found = _CACHE_CONFIG.search(metrics or "")
    return dict(_LABEL.findall(found[1])) if found else None


def _get_json(plan: LoadPlan, path: str) -> dict[str, Any] | None:
    text = _get(plan, path)
    try:
        value = json.loads(text) if text is not None else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _get(plan: LoadPlan, path: str) -> str | None:
    request = urllib.request.Request(plan.base_url + path, headers=dict(plan.headers))
    if plan.token_file:
        token = Path(plan.token_file).read_text(encoding="utf-8").strip()
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            return str(answer.read(_MAX_BYTES).decode("utf-8", "replace"))
    except (OSError, urllib.error.URLError, ValueError):
        return None


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
