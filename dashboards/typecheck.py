"""Dashboards -> a TypeScript file of literals of Grafana's own types -> what `tsc` finds wrong.

A misspelt, missing or wrongly typed option becomes a compiler error. Meaning (queries, units) is
checked elsewhere. Needs node and npm; the types are installed once into the cache folder.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from dashboards.style import Json

PACKAGES = Path(__file__).resolve().parent / "schema"
MAJORS = ("grafana-13", "grafana-11")
PLUGINS = {
    "bargauge": ("bargauge", "BarGauge"),
    "heatmap": ("heatmap", "Heatmap"),
    "stat": ("stat", "Stat"),
    "state-timeline": ("statetimeline", "StateTimeline"),
    "table": ("table", "Table"),
    "timeseries": ("timeseries", "TimeSeries"),
    "xychart": ("xychart", "XYChart"),
}
"""Panel type -> folder and prefix of its types; a type that is not here cannot be checked and is an error."""

WITHOUT_FIELD_TYPE = {"bargauge", "stat"}

PRELUDE = """\
import type {{ AnnotationQuery, Dashboard, DashboardLink, DataSourceRef, FieldConfig, Panel, VariableModel }}
  from '@grafana/schema';
{imports}
// Enums are stored as their values: the same types with each enum member spelt as its text.
type Plain<T> = T extends string ? `${{T}}`
  : T extends number | boolean | null | undefined ? T
  : T extends (infer U)[] ? Plain<U>[]
  : T extends object ? {{ [K in keyof T]: Plain<T[K]> }} : T;
// The Prometheus data source reads these beside the fields every annotation has.
type Event = Plain<AnnotationQuery> & {{
  expr: string; step: string; tagKeys: string; textFormat: string; titleFormat: string; useValueForTime: boolean
}};
interface Target {{
  datasource: DataSourceRef; editorMode: 'code'; exemplar: boolean; expr: string;
  format: 'time_series' | 'heatmap' | 'table'; instant: boolean; interval?: string; legendFormat: string;
  range: boolean; refId: string
}}
"""


class TypecheckError(RuntimeError):
    """The check itself could not run; the text says why and what to do."""


def typescript(dashboards: Iterable[Json]) -> str:
    """Return one TypeScript module in which every part of the dashboards is a literal of its type."""
    lines = [PRELUDE.format(imports="\n".join(_imports()))]
    for number, board in enumerate(dashboards):
        rest = {k: v for k, v in board.items() if k not in ("panels", "templating", "annotations")}
        parts = [("page", "Dashboard", rest)]
        parts += [(one["name"], "VariableModel", one) for one in board["templating"]["list"]]
        parts += [(one["name"], "Event", one) for one in board["annotations"]["list"]]
        for panel in board["panels"]:
            parts += [(panel["title"], kind, value) for kind, value in _panel_parts(panel)]
        for part, (where, kind, value) in enumerate(parts):
            name = f"d{number}_{part}"
            wrapped = kind if kind in ("Event", "Target") or kind.startswith("Partial") else f"Plain<{kind}>"
            lines.append(f"// {board['uid']}: {where}")
            lines.append(f"export const {name}: {wrapped} = {json.dumps(value, ensure_ascii=False)};")
    return "\n".join(lines) + "\n"


def _imports() -> list[str]:
    root = "./node_modules/@grafana/schema/dist/esm/raw/composable"
    return [
        f"import type {{ Options as {prefix}Options"
        + ("" if kind in WITHOUT_FIELD_TYPE else f", FieldConfig as {prefix}Field")
        + f" }} from '{root}/{folder}/panelcfg/x/{prefix}PanelCfg_types.gen.d.ts';"
        for kind, (folder, prefix) in PLUGINS.items()
    ]


def _panel_parts(panel: Json) -> list[tuple[str, Json]]:
    """Cut a panel where Grafana's types say Record<string, unknown>, so that each piece meets its own type."""
    if panel["type"] == "row":
        return [("Panel", {k: v for k, v in panel.items() if k not in ("collapsed", "panels")})]
    if panel["type"] not in PLUGINS:
        raise TypecheckError(f"panel type {panel['type']!r} has no entry in typecheck.PLUGINS; add its types")
    prefix = PLUGINS[panel["type"]][1]
    parts: list[tuple[str, Json]] = [("Panel", panel), (f"{prefix}Options", panel["options"])]
    parts += [("Target", one) for one in panel["targets"]]
    custom = dict(panel["fieldConfig"]["defaults"].get("custom", {}))
    plain = {}
    for override in panel["fieldConfig"]["overrides"]:
        for entry in override["properties"]:
            part, _, key = entry["id"].partition(".")
            if part == "custom":
                parts.append((f"Partial<Plain<{prefix}Field>>", {key: entry["value"]}))
            else:
                plain[part] = entry["value"]
                parts.append(("FieldConfig", {part: entry["value"]}))
    if panel["type"] not in WITHOUT_FIELD_TYPE:
        parts.append((f"Partial<Plain<{prefix}Field>>", custom))
    elif custom:
        raise TypecheckError(f"{panel['type']} panel {panel['title']!r} has custom fields its type lacks")
    return parts


def check(dashboards: Iterable[Json], major: str) -> list[str]:
    """Return what tsc says against the types of *major* (one of MAJORS), one line a fault; [] is right.

    Raises TypecheckError when node, npm or the packages are not to be had.
    """
    folder = _installed(major)
    source = folder / f"dashboards-{os.getpid()}.mts"
    text = typescript(dashboards)
    source.write_text(text, encoding="utf-8")
    try:
        done = subprocess.run(
            ["node", "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck",
             "--module", "nodenext", "--target", "es2022", source.name],
            cwd=folder, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
    finally:
        source.unlink()
    if done.returncode and not done.stdout:
        raise TypecheckError(f"tsc failed without a finding: {done.stderr.strip()}")
    return [_named(fault, text.splitlines()) for fault in done.stdout.splitlines()]


def _named(fault: str, lines: list[str]) -> str:
    """Put the dashboard and panel, which stand in the comment over each literal, in place of the line number."""
    found = re.match(r"[^(]+\((\d+),\d+\): (.*)", fault)
    if not found:
        return fault
    above = [line for line in lines[: int(found[1]) - 1] if line.startswith("// ") and ": " in line]
    return f"{above[-1][3:] if above else 'prelude'}: {found[2]}"


def _installed(major: str) -> Path:
    """The folder where the pinned packages of *major* lie, installed at the first call."""
    manifest = (PACKAGES / major / "package.json").read_text(encoding="utf-8")
    digest = hashlib.sha256(manifest.encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "inferwatch" / "grafana-types" / f"{major}-{digest}"
    if (folder / "installed").exists():
        return folder
    if not shutil.which("npm") or not shutil.which("node"):
        raise TypecheckError(
            "node and npm are needed to check dashboards against Grafana's types; install node 20"
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(manifest, encoding="utf-8")
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode:
        raise TypecheckError(f"npm install in {folder} failed: {done.stderr.strip()[-500:]}")
    (folder / "installed").touch()
    return folder
