"""Constant series with times of their own -> TSDB blocks, by promtool's OpenMetrics import."""

import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inferwatch.stack.errors import StackError

# promtool reads its whole input once for every block, so each block gets a file of its own.
# 18 h is a block length that Prometheus itself makes (2 h × 3 × 3): few blocks, one pass each.
BLOCK_SECONDS = 18 * 3600
_TIMEOUT_SECONDS = 300


@dataclass(frozen=True)
class ConstantSeries:
    """One series with the same value at *start*, *start* + *step_seconds*, ... up to before *end* (Unix seconds)."""

    name: str
    labels: Mapping[str, str]
    value: float
    start: int
    end: int
    step_seconds: int

    def samples(self) -> int:
        """How many samples it has."""
        return max(0, -(-(self.end - self.start) // self.step_seconds))


def write_blocks(series: Sequence[ConstantSeries], data_dir: Path, promtool: Path) -> int:
    """
    Write the series as blocks into a data directory that holds none; return the number of blocks.

    Raises StackError when the directory holds data already or promtool refuses the samples.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    if held := sorted(entry.name for entry in data_dir.iterdir() if entry.is_dir()):
        raise StackError(
            f"{data_dir} already holds data ({held[0]}); a history is written only into an empty directory, "
            "before Prometheus starts: remove it or name another"
        )
    spans: dict[int, list[ConstantSeries]] = defaultdict(list)
    for one in series:
        for span in range(one.start // BLOCK_SECONDS, (one.end - 1) // BLOCK_SECONDS + 1):
            spans[span].append(one)
    with tempfile.TemporaryDirectory(prefix="history-", dir=data_dir.parent) as scratch:
        for span in sorted(spans):
            source = Path(scratch) / "history.om"
            with source.open("w", encoding="utf-8") as file:
                file.writelines(_lines(spans[span], span * BLOCK_SECONDS))
                file.write("# EOF\n")
            _import(promtool, source, data_dir)
    return len(spans)


def _lines(series: Sequence[ConstantSeries], begin: int) -> Iterator[str]:
    """The part of each series that lies in the block which begins at *begin*, in OpenMetrics lines."""
    times: dict[tuple[int, int, int], list[str]] = {}
    for one in series:
        key = (one.start, one.end, one.step_seconds)
        if key not in times:
            skipped = max(0, -(-(begin - one.start) // one.step_seconds))
            first = one.start + skipped * one.step_seconds
            times[key] = [
                f"{t}\n" for t in range(first, min(one.end, begin + BLOCK_SECONDS), one.step_seconds)
            ]
        if times[key]:
            prefix = f"{one.name}{_label_text(one.labels)} {one.value!r} "
            yield prefix + prefix.join(times[key])


def _label_text(labels: Mapping[str, str]) -> str:
    def quoted(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    return "{" + ",".join(f'{name}="{quoted(value)}"' for name, value in labels.items()) + "}"


def _import(promtool: Path, source: Path, data_dir: Path) -> None:
    command = [str(promtool), "tsdb", "create-blocks-from", f"--max-block-duration={BLOCK_SECONDS}s"]
    command += ["openmetrics", "--quiet", str(source), str(data_dir)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StackError(f"{promtool} could not write the history: {error}") from error
    if done.returncode != 0:
        raise StackError(f"{promtool} refused the history: {(done.stderr or done.stdout).strip()[-500:]}")
