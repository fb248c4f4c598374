"""`make compose-check`: everything that can be tried here holds, by the real command line and a native rehearsal."""

from pathlib import Path

import pytest
from rich.console import Console

from inferwatch.compose import check, cli
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import default_settings

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
REPORTER = Reporter(Console(stderr=True))


def test_nothing_fails_and_what_could_not_be_held_is_said() -> None:
    """Thirteen checks hold; only what needs a container engine, a GPU or a registry is left, each with its reason."""
    verdicts = check.run_all(default_settings(), REPORTER)
    print("\n".join(f"{v.state:<8} {v.what}: {v.text}" for v in verdicts))

    assert [v for v in verdicts if v.state == "FAIL"] == []
    assert {v.what for v in verdicts if v.state == "ok"} == {what for what, _ in check.CHECKS}
    assert [v.what for v in verdicts if v.state == "not held"] == [
        "container engine",
        "Grafana",
        "profile gpu",
        "profile cpu",
        "digests",
    ]


def test_the_real_command_line_refuses_what_is_no_compose_file(tmp_path: Path) -> None:
    """The schema is the command line's own: an unknown key does not pass."""
    words = cli.resolve(default_settings(), REPORTER)
    file = tmp_path / "docker-compose.yml"
    file.write_text("services: {a: {image: 'x:1', memlimit: 1g}}\n")
    read, fault = cli.read(words, file, "")

    assert read is None
    assert "memlimit" in fault
