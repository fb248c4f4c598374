"""Recorded pages of our exporters -> a Prometheus that holds them, for as long as a block lasts.

A recording is text, gzipped or not: a line "# SCRAPE engine|node UNIX_SECONDS", then the page without comments,
and so on. It is drawn as if it had been scraped then.
"""

import contextlib
import gzip
import re
import socket
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from inferwatch.promapi import Prometheus
from inferwatch.stack import binaries
from inferwatch.stack.errors import StackError
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import HOST, Settings
from slo.names import labels

ENGINE = f'{labels.SERVICE}="recorded",{labels.INSTANCE}="engine",job="{labels.JOB_ENGINE}"'
NODE = f'job="{labels.JOB_NODE}"'
NODE_INSTANCE = f'{labels.INSTANCE}="node"'
READY_SECONDS = 60.0
_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")


@dataclass(frozen=True)
class Recorded:
    """A Prometheus at *url* that holds samples from *first* to *last* (Unix seconds)."""

    url: str
    first: float
    last: float


@contextlib.contextmanager
def prometheus_of(recording: Path, settings: Settings, reporter: Reporter) -> Iterator[Recorded]:
    """
    Start a Prometheus on what *recording* holds; it ends with the block and leaves nothing behind.

    Raises StackError when the recording cannot be read or Prometheus does not start.
    """
    text, first, last = openmetrics(recording)
    promtool = binaries.resolve("promtool", settings, reporter).path
    binary = binaries.resolve("prometheus", settings, reporter).path
    with tempfile.TemporaryDirectory(prefix="inferwatch-recorded-") as name:
        folder = Path(name)
        source, data, config = folder / "pages.om", folder / "data", folder / "prometheus.yml"
        source.write_text(text, encoding="utf-8")
        config.write_text("global: {}\n", encoding="utf-8")
        made = subprocess.run(
            [str(promtool), "tsdb", "create-blocks-from", "openmetrics", str(source), str(data)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode:
            raise StackError(f"{recording}: promtool refused it: {made.stderr.strip()[-300:]}")
        with _running(binary, config, data) as url:
            yield Recorded(url, first, last)


@contextlib.contextmanager
def _running(binary: Path, config: Path, data: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [str(binary), f"--config.file={config}", f"--storage.tsdb.path={data}",
         "--storage.tsdb.retention.time=100y", f"--web.listen-address={HOST}:{port}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    url = f"http://{HOST}:{port}"
    try:
        deadline = time.monotonic() + READY_SECONDS
        with Prometheus(url) as client:
            while not client.is_ready():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise StackError(f"{binary} did not start on the recording's blocks")
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def openmetrics(recording: Path) -> tuple[str, float, float]:
    """
    Return the samples in OpenMetrics text with their times, the first time and the last.

    Raises StackError for a file that is no recording.
    """
    opened = gzip.open if recording.suffix == ".gz" else open
    families: dict[str, list[str]] = defaultdict(list)
    times: list[float] = []
    who = ""
    with opened(recording, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            words = line.split()
            if line.startswith("# SCRAPE") and len(words) == 4:
                who = words[2]
                times.append(float(words[3]))
            elif words and not line.startswith("#"):
                found = _SAMPLE.match(line.strip())
                if not found or not times:
                    raise StackError(f"{recording}: line {number} is neither a scrape nor a sample")
                families[found[1]].append(_sample(who, found, times[-1]))
    if not times:
        raise StackError(f"{recording}: holds no line '# SCRAPE WHO UNIX_SECONDS'; record it so")
    parts = [f"# TYPE {name} unknown\n" + "".join(samples) for name, samples in sorted(families.items())]
    return "".join(parts) + "# EOF\n", min(times), max(times)


def _sample(who: str, found: re.Match[str], at: float) -> str:
    own = (found[2] or "").rstrip(",")
    added = ENGINE
    if who != "engine":
        added = NODE if f'{labels.INSTANCE}="' in own else f"{NODE},{NODE_INSTANCE}"
    return f"{found[1]}{{{own + ',' if own else ''}{added}}} {found[3]} {at:.3f}\n"
