"""`inferwatch export`: links that open on this machine only are said aloud, not sent to a cluster in silence."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from inferwatch.cli import main
from slo.trust import Links


def test_links_that_nobody_else_can_open_are_named(tmp_path: Path) -> None:
    """The shipped slo.yaml links to loopback and to a path of the checkout; the files are written all the same."""
    answer = CliRunner().invoke(main, ["export", "rules", "--out", str(tmp_path)])

    assert answer.exit_code == 0
    assert (tmp_path / "stack.yaml").is_file() or list(tmp_path.rglob("stack.yaml"))
    assert answer.stderr.splitlines() == [
        "slo.yaml: links.dashboard_base is http://127.0.0.1:3000: notifications will link where nobody else gets",
        "slo.yaml: links.runbook_base is alerts/runbooks: notifications will link where nobody else gets",
    ]


@pytest.mark.parametrize(
    ("dashboards", "runbooks", "expected"),
    [
        ("https://grafana.example", "https://wiki.example/rb", (False, False)),
        ("http://localhost:3000", "docs", (True, True)),
        ("http://[::1]:3000", "https://wiki.example", (True, False)),
        ("http://10.0.0.1:3000", "./docs", (False, True)),
    ],
)
def test_which_links_are_local(dashboards: str, runbooks: str, expected: tuple[bool, bool]) -> None:
    """Loopback in any spelling, and a path."""
    links = Links(dashboard_base=dashboards, runbook_base=runbooks)

    assert (links.dashboards_are_local, links.runbooks_are_local) == expected
