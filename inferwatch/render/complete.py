"""Any classic dashboard -> the same with every key that the drawings read, at Grafana's default where it lacked."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

_ORANGE = "dark-orange"
_HEATMAP = {"mode": "scheme", "scheme": "Viridis", "exponent": 0.5, "fill": _ORANGE, "steps": 64}
_THRESHOLDS = {"mode": "absolute", "steps": [{"value": None, "color": "#009E73"}]}


def complete(dashboard: Mapping[str, Any]) -> Json:
    """Return a copy; panels keep their order, ids that are missing are counted on."""
    panels = [_panel(one, number) for number, one in enumerate(dashboard["panels"], 1)]
    events = [one for one in dashboard["annotations"].get("list", ()) if _expr(one)]
    return {
        **dashboard,
        "panels": panels,
        "templating": {"list": list(dashboard["templating"].get("list", ()))},
        "annotations": {"list": [{"iconColor": "#0072B2", **one, "expr": _expr(one)} for one in events]},
    }


def _expr(event: Mapping[str, Any]) -> str:
    """The query of an annotation, where it is one of Prometheus: newer ones hold it in their target."""
    target = event.get("target")
    return str(event.get("expr") or (target.get("expr", "") if isinstance(target, dict) else ""))


def _panel(panel: Mapping[str, Any], number: int) -> Json:
    config = panel.get("fieldConfig") or {}
    defaults = dict(config.get("defaults") or {})
    steps = (defaults.get("thresholds") or {}).get("steps")
    options = dict(panel.get("options") or {})
    if panel["type"] == "heatmap":
        options["color"] = {**_HEATMAP, **(options.get("color") or {})}
        options["yAxis"] = options.get("yAxis") or {}
    return {
        **panel,
        "id": panel.get("id", number),
        "title": panel.get("title", ""),
        "gridPos": panel.get("gridPos") or {"x": 0, "y": 8 * number, "w": 12, "h": 8},
        "fieldConfig": {
            "defaults": {**defaults, "thresholds": defaults["thresholds"] if steps else _THRESHOLDS},
            "overrides": list(config.get("overrides") or ()),
        },
        "options": options,
        "targets": [_target(t, place) for place, t in enumerate(panel.get("targets") or ()) if t.get("expr")],
    }


def _target(target: Mapping[str, Any], place: int) -> Json:
    defaults = {
        "refId": "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[place % 26],
        "legendFormat": "",
        "format": "time_series",
        "instant": False,
    }
    return {**defaults, **{key: value for key, value in target.items() if value is not None}}
