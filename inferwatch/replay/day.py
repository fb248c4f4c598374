"""A minute of a healthy simulated engine -> a whole day of it, judged by the rules under promtool, in minutes.

The engine is read through the exporter at the production interval. Each step of the day is one of the
recorded steps, drawn at random, or an idle one; how often follows the hour. promtool has one interval for
all groups of a test: pages are judged at the quick one, everything together at the slow one.
"""

import asyncio
import json
import math
import random
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from exporters.engine.config import load_config
from exporters.engine.fetch import Upstream
from exporters.engine.labels import LabelCache
from exporters.engine.probe import Prober
from inferwatch.scenarios import derive
from inferwatch.stack import binaries, config, processes, services
from inferwatch.stack.errors import StackError
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import HOST, Settings
from slo import spec as slo_spec
from slo.names import alerts, engine, labels, records
from slo.spec import Spec

RECORDED_STEPS = 24
REQUESTS_PER_SECOND = 8.0
QUIETEST_HOUR = 4
BUSY_SHARE = (0.15, 0.95)
"""Share of steps that are busy ones: at night, at the peak."""
SEED = 20
HOUR_SECONDS = 3600
"""Silence is asked for hour by hour: a query of promtool holds 10,000 samples, half a day of one series."""
LOOKS = 200
"""How often it is looked, over all hours, whether the promises were judged."""
_SAMPLE = re.compile(r"^([a-z_][\w:]*)(\{.*\})? (\S+)$")

NOT_HELD = 1
"""What promtool ends with where a test does not hold; by all else but 0 it did not come to an end."""

_FIRED = re.compile(r'\{alertname="(\w+)", severity="(\w+)"\}')

Page = Mapping[str, float]
"""Series as text -> value."""


@dataclass(frozen=True)
class Day:
    """
    What a healthy day brought.

    Attributes:
        fired: (alert, severity) of all that fired at any time.
        trouble: what promtool said beside that, which is a failure whatever fired.
    """

    hours: float
    steps: int
    series: int
    fired: tuple[tuple[str, str], ...]
    trouble: str

    @property
    def passed(self) -> bool:
        """Whether nobody was paged and no ticket opened; warnings are told, and wake nobody."""
        return not self.trouble and all(severity == "warning" for _, severity in self.fired)


def run(settings: Settings, hours: float, reporter: Reporter) -> Day:
    """Record, stretch, judge. Raises StackError when the engine or promtool does not work."""
    spec = slo_spec.load(settings.spec_path)
    pages = _recorded(spec, settings, reporter)
    steps = int(hours * HOUR_SECONDS / spec.intervals.scrape_seconds)
    columns = stretched(pages, steps, spec.intervals.scrape_seconds, random.Random(SEED))
    tests = _write(spec, columns, steps, settings.run_dir / "day")
    promtool = binaries.resolve("promtool", settings, reporter).path
    with reporter.task(f"judging {hours:g} h with promtool"), ThreadPoolExecutor(len(tests)) as pool:
        said = list(pool.map(partial(_judged, promtool), tests))
    fired, trouble = merged(said)
    return Day(hours, steps, len(columns), fired, trouble)


def _judged(promtool: Path, test: Path) -> str:
    """What promtool complains of in one test, which has a CPU of its own; "" where it holds."""
    done = subprocess.run(
        [str(promtool), "test", "rules", str(test)], capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, NOT_HELD):
        raise StackError(f"promtool ended with {done.returncode} on {test}: {done.stderr.strip()[-500:]}")
    return done.stdout + done.stderr if done.returncode else ""


Fired = tuple[tuple[str, str], ...]
"""(alert, severity) pairs."""


def merged(said: Sequence[str]) -> tuple[Fired, str]:
    """Return what fired in any of the tests, and every trouble of each: what one says does not excuse another."""
    found = [told(text) for text in said if text]
    fired = {one for pairs, _ in found for one in pairs}
    return tuple(sorted(fired)), "\n".join(trouble for _, trouble in found if trouble)


def told(said: str) -> tuple[Fired, str]:
    """Return what fired by promtool's own text of failures, and the text itself where it says more than that."""
    fired = sorted(set(_FIRED.findall(said)))
    only = bool(fired) and all("ALERTS{" in line for line in said.splitlines() if "expr:" in line)
    return tuple(fired), "" if only else said.strip()[-4000:]


def _recorded(spec: Spec, settings: Settings, reporter: Reporter) -> list[Page]:
    port, control = settings.port("engine"), settings.port("engine-control")
    sim = processes.Service(
        name="engine",
        argv=services.python(
            *("sim", "--host", HOST, "--port", str(port), "--control-port", str(control)),
            *("--self-load", f"{REQUESTS_PER_SECOND:g}"),
        ),
        url=f"http://{HOST}:{port}",
        ready_path="/health",
    )
    record = processes.start(sim, settings.logs_dir)
    try:
        processes.wait_ready(sim, record, reporter)
        with reporter.task(f"recording {RECORDED_STEPS} steps of a healthy engine"):
            return asyncio.run(_probed(sim.url, spec.intervals.scrape_seconds))
    finally:
        processes.stop(record)


async def _probed(url: str, every: int) -> list[Page]:
    upstream, pages = Upstream(), []
    prober = Prober(load_config(), upstream, LabelCache())
    try:
        await asyncio.sleep(2 * every)  # counters that appear with the first request are there
        for _ in range(RECORDED_STEPS + 1):
            outcome = await prober.probe(url, "default", every)
            if outcome.result != "success":
                raise StackError(f"{url} could not be read: {outcome.result}")
            pages.append(parsed(outcome.body.decode()))
            await asyncio.sleep(every)
    finally:
        await upstream.close()
    return pages


def parsed(text: str) -> Page:
    """Return the samples of an exposition page."""
    found = (_SAMPLE.match(line) for line in text.splitlines() if line and not line.startswith("#"))
    return {match[1] + (match[2] or ""): float(match[3]) for match in found if match}


def stretched(pages: Sequence[Page], steps: int, every: int, rng: random.Random) -> dict[str, list[float]]:
    """
    Return series -> a value for each step, from recorded pages *every* seconds apart.

    Counters go on by what one recorded step added, all series by the same step; gauges are those at its
    end. An idle step adds nothing and has nothing running. Only series that every page has are taken.
    """
    common = [name for name in pages[0] if all(name in page for page in pages)]
    values = {name: [pages[0][name]] for name in common}
    for step in range(1, steps):
        drawn = rng.randrange(1, len(pages)) if rng.random() < busy_share(step * every) else None
        for name in common:
            values[name].append(_next(name, values[name][-1], pages, drawn))
    return values


def _next(name: str, before: float, pages: Sequence[Page], drawn: int | None) -> float:
    if _is_counter(name):
        return before if drawn is None else before + max(0.0, pages[drawn][name] - pages[drawn - 1][name])
    if drawn is not None:
        return pages[drawn][name]
    return 0.0 if name.startswith(_IDLE) else before


_IDLE = (engine.REQUESTS_RUNNING, engine.REQUESTS_WAITING, engine.KV_CACHE_USAGE_RATIO)


def _is_counter(name: str) -> bool:
    return name.partition("{")[0].endswith(("_total", "_bucket", "_sum", "_count"))


def busy_share(second: int) -> float:
    """Return the share of busy steps at a second of the day: a cosine with its low at QUIETEST_HOUR."""
    low, high = BUSY_SHARE
    turn = (second / HOUR_SECONDS - QUIETEST_HOUR) / 24
    return low + (high - low) * (1 - math.cos(2 * math.pi * turn)) / 2


def _write(spec: Spec, columns: Mapping[str, Sequence[float]], steps: int, folder: Path) -> list[Path]:
    """Write the rules and two tests, pages at the quick interval and all rules at the slow one."""
    every, service = spec.intervals.scrape_seconds, spec.services[0].id
    own = f'{labels.SERVICE}="{service}",{labels.INSTANCE}="http://healthy",job="{labels.JOB_ENGINE}"'
    rules = derive.rule_files(spec)
    for name, text in rules.items():
        config.write_text(folder / name, text)
    series = list(_series(columns, own, steps))
    last = (steps - 1) * every
    span = f"[{min(last, HOUR_SECONDS) + every}s]"
    ends = [*range(HOUR_SECONDS, last, HOUR_SECONDS), last]
    silent = f'count by (alertname, severity) (count_over_time(ALERTS{{alertstate="firing",alertname!="{alerts.WATCHDOG}"}}{span}))'
    quick, slow = spec.intervals.evaluation_seconds, spec.intervals.slow_evaluation_seconds
    written = []
    for title, interval, files in (
        ("pages", quick, derive.rule_files(spec, most_seconds=quick)),
        ("everything", slow, rules),
    ):
        # Silence means something only where the promises were judged all day.
        step = look_seconds(last, every)
        looks, fewest = f"[{last}s:{step}s]", 0.9 * last / step
        judged = (
            f'count(count_over_time({records.TOTAL_EVENTS}{{service="{service}"}}{looks}) > {fewest:.0f})'
        )
        checks = [
            *(_asked(silent, end, []) for end in ends),
            _asked(judged, last, [{"labels": "{}", "value": len(spec.services[0].slos)}]),
        ]
        test = {"name": title, "interval": f"{every}s", "input_series": series, "promql_expr_test": checks}
        content = {"rule_files": sorted(files), "evaluation_interval": f"{interval}s", "tests": [test]}
        written.append(folder / f"{title}.promtool.yaml")
        config.write_text(written[-1], json.dumps(content))
    return written


def look_seconds(last: int, every: int) -> int:
    """Return the seconds between two looks at *last* seconds that are read every *every*: LOOKS of them, or fewer."""
    return max(every, last // LOOKS)


def _asked(expr: str, at: int, expected: list[dict[str, Any]]) -> dict[str, Any]:
    return {"expr": expr, "eval_time": f"{at}s", "exp_samples": expected}


def _series(columns: Mapping[str, Sequence[float]], own: str, steps: int) -> Iterator[dict[str, str]]:
    yield {"series": f"up{{{own}}}", "values": f"1x{steps - 1}"}
    for name, values in columns.items():
        metric, _, rest = name.partition("{")
        inner = rest[:-1] + "," if rest else ""
        yield {"series": f"{metric}{{{inner}{own}}}", "values": " ".join(f"{value:.12g}" for value in values)}
