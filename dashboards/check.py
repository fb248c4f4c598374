"""`python -m dashboards.check [--prometheus URL]`: everything that can be held against the dashboards, counted."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import yaml

from dashboards import lint, typecheck
from dashboards.coverage import Report, examine
from dashboards.registry import MAY_BE_MISSING, NEEDS, build_all
from dashboards.render import ROOT, write
from dashboards.style import PROMETHEUS_UID, Json
from inferwatch.promapi import PromError, Prometheus
from inferwatch.render.sources import seconds
from inferwatch.render.variables import window
from slo.spec import DEFAULT_PATH, Spec, SpecError, load


def static_faults(spec: Spec, spec_path: Path = DEFAULT_PATH) -> list[str]:
    """Faults that need no Prometheus: stale files, our own rules, Grafana's types.

    Raises TypecheckError when Grafana's types cannot be had.
    """
    boards = build_all(spec)
    faults = [f"{path} is stale; run `inferwatch gen`" for path in write(True, spec_path=spec_path)]
    for uid, board in boards.items():
        faults += [f"{uid}: {fault}" for fault in lint.dashboard(board, [PROMETHEUS_UID])]
    file = yaml.safe_load((ROOT / "provisioning" / "datasources" / "inferwatch.yaml").read_text("utf-8"))
    faults += lint.datasource(file, spec.intervals.scrape_seconds)
    for major in typecheck.MAJORS:
        faults += [f"{major}: {fault}" for fault in typecheck.check(boards.values(), major)]
    return faults


def live(boards: Sequence[Json], url: str, span: str, scrape_seconds: int) -> Report:
    """Run every query against the Prometheus at *url* over the last *span* ("1h").

    Raises PromError when it cannot be asked.
    """
    now = time.time()
    with Prometheus(url, timeout_seconds=60.0) as prometheus:
        return examine(
            boards, prometheus, window(now - seconds(span), now, scrape_seconds), NEEDS, MAY_BE_MISSING
        )


def counts(report: Report) -> str:
    """One line a count, then what has no data and what nobody shows."""
    lines = [
        f"dashboards {report.dashboards}",
        f"panels {report.panels}",
        f"heatmaps {report.heatmaps}",
        f"queries {report.queries}",
        f"queries with data {report.with_data}",
        *(f"  no data: {where}" for where in report.without_data),
        *(f"not examined: {page}" for page in report.not_examined),
        f"uncovered metrics {len(report.uncovered)} (exported by us, on no page and in no rule)",
        *(f"  {name}" for name in report.uncovered),
    ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit 0 when nothing is wrong; with --strict, every query must have data too."""
    parser = argparse.ArgumentParser(prog="python -m dashboards.check", description=__doc__)
    parser.add_argument("--prometheus", help="base URL of a running one; without it queries are not run")
    parser.add_argument("--range", dest="span", default="1h", help="how far back queries look (%(default)s)")
    parser.add_argument("--strict", action="store_true", help="a query without data is a fault")
    given = parser.parse_args(argv)
    try:
        spec = load()
        faults = static_faults(spec)
        boards = list(build_all(spec).values())
        if given.prometheus:
            report = live(boards, given.prometheus, given.span, spec.intervals.scrape_seconds)
            faults += report.faults
            if given.strict:
                faults += [f"{where}: no data" for where in report.without_data]
            sys.stdout.write(counts(report) + "\n")
        else:
            panels = [p for board in boards for p in board["panels"] if p["type"] != "row"]
            sys.stdout.write(
                f"dashboards {len(boards)}\npanels {len(panels)}\nqueries were not run: no --prometheus\n"
            )
    except (SpecError, typecheck.TypecheckError, PromError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write("".join(f"fault: {fault}\n" for fault in faults) or "no faults\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
