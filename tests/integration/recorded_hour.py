"""A recorded vLLM stretched to one hour with a bad patch in it -> the same series in Prometheus and VictoriaMetrics."""

import random
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import urllib3
import yaml

from alerts.registry import all_groups
from exporters.engine.labels import LabelCache
from exporters.engine.render import EngineVersion, render_reading
from exporters.engine.translate import translate
from exporters.engine.vllm import ADAPTER
from inferwatch.promapi import Prometheus
from inferwatch.replay import recording
from inferwatch.replay.day import parsed, stretched
from slo import spec

ROOT = Path(__file__).resolve().parents[2]
EVERY, STEPS = 5, 720
TARGET = 'service="llm",instance="http://engine:8000",job="llm-engine"'
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True)
class Rule:
    """A rule of the generated files: *name* is a record's, or an alert's with *is_alert*."""

    name: str
    expr: str
    labels: Mapping[str, str]
    every: int
    is_alert: bool


def rules(prefixes: Sequence[str]) -> list[Rule]:
    """Rules of the files that begin with *prefixes*, in the order in which they build on each other."""
    groups = [
        group
        for file in (ROOT / "alerts" / "rules").glob("*.yaml")
        if file.name.startswith(tuple(prefixes))
        for group in yaml.safe_load(file.read_text())["groups"]
    ]
    order = [group.name for group in all_groups(spec.load())]
    found = []
    for group in sorted(groups, key=lambda one: order.index(one["name"])):
        every = _seconds(group["interval"])
        for rule in group["rules"]:
            name = rule.get("record") or rule["alert"]
            found.append(Rule(name, rule["expr"], rule.get("labels", {}), every, "alert" in rule))
    return found


def _seconds(text: str) -> int:
    return int(text[:-1]) * {"s": 1, "m": 60}[text[-1]]


def hour() -> dict[str, list[float]]:
    """Series -> a value every 5 s for an hour: real pages, drawn again and again, with trouble from minute 40 on."""
    pages = []
    (found,) = [r for r in recording.read(ROOT / "tests" / "fixtures" / "replay") if r.name == "h200"]
    for page in found.pages:
        if page.path is not None:
            reading = translate(page.text(), ADAPTER, LabelCache(), "0.26.0", 10_000)
            pages.append(parsed(render_reading(reading, EngineVersion("0.26.0")).decode()))
    columns = {
        _targeted(name): values for name, values in stretched(pages, STEPS, EVERY, random.Random(7)).items()
    }
    columns[f"llm_probe_success{{{TARGET}}}"] = [1.0] * STEPS
    columns[f"up{{{TARGET}}}"] = [1.0] * STEPS
    _add_trouble(columns)
    return columns


def _add_trouble(columns: dict[str, list[float]]) -> None:
    """From minute 40 half of all requests fail, at four a second; from minute 50 to 52 the engine is down."""
    ok = f'llm_http_requests_total{{model="qwen",handler="/v1/completions",code="2xx",{TARGET}}}'
    bad = ok.replace("2xx", "5xx")
    columns[ok] = [20.0 * step for step in range(STEPS)]
    columns[bad] = [0.0 if step < 480 else 10.0 * (step - 480) for step in range(STEPS)]
    probe = columns[f"llm_probe_success{{{TARGET}}}"]
    probe[600:624] = [0.0] * 24


def _targeted(series: str) -> str:
    name, _, rest = series.partition("{")
    return f"{name}{{{rest[:-1] + ',' if rest else ''}{TARGET}}}"


def openmetrics(columns: Mapping[str, Sequence[float]], start: int, every: int = EVERY) -> Iterator[str]:
    """Lines with times, for promtool's import and VictoriaMetrics' alike."""
    for series, values in columns.items():
        for step, value in enumerate(values):
            yield f"{series} {value!r} {start + step * every}\n"


def levels(records: Sequence[Rule]) -> list[list[Rule]]:
    """Records in the order in which they can be computed; what leads back to itself is cut at its first rule."""
    names = {rule.name for rule in records}
    depth: dict[str, int] = {}
    for rule in records:
        needs = {word for word in _NAME.findall(rule.expr) if word in names and word != rule.name}
        known = [depth[need] for need in needs if need in depth]
        depth[rule.name] = max(depth.get(rule.name, 0), 1 + max(known, default=-1))
    return [[r for r in records if depth[r.name] == at] for at in range(1 + max(depth.values()))]


def series_text(labels: Mapping[str, str]) -> str:
    """A series as the exposition format writes it."""
    rest = ",".join(f'{k}="{_quoted(v)}"' for k, v in sorted(labels.items()) if k != "__name__")
    return f"{labels['__name__']}{{{rest}}}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def evaluated(client: Prometheus, rule: Rule, start: int, end: int) -> Iterator[str]:
    """What a record would have written over the hour, as lines with times."""
    first = -(-start // rule.every) * rule.every
    for found in client.query_range(rule.expr, start=first, end=end, step_seconds=rule.every):
        labels = {**found.labels, **rule.labels, "__name__": rule.name}
        for at, value in found.points:
            yield f"{series_text(labels)} {value!r} {int(at)}\n"


def write_blocks(promtool: Path, lines: Sequence[str], data: Path) -> None:
    """Make blocks of the lines, sorted as promtool wants them."""
    source = data.parent / "import.om"
    source.write_text("".join(lines) + "# EOF\n")
    words = [str(promtool), "tsdb", "create-blocks-from", "openmetrics", "--quiet", str(source), str(data)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def to_victoria(url: str, lines: Sequence[str]) -> None:
    """Import the lines, whose times are milliseconds there, and make them visible."""
    body = "".join(f"{line.rstrip()}000\n" for line in lines)
    pool = urllib3.PoolManager()
    assert pool.request("POST", f"{url}/api/v1/import/prometheus", body=body.encode()).status == 204
    assert pool.request("GET", f"{url}/internal/force_flush").status == 200
    pool.clear()


def unnamed(labels: Mapping[str, str]) -> str:
    """Labels without the name, which a rule replaces and which the two stores keep at different places."""
    return series_text({**labels, "__name__": ""})
