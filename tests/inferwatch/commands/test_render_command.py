"""`inferwatch render`: words that mean nothing are refused before anything is drawn."""

from pathlib import Path

from click.testing import CliRunner

from inferwatch.cli import main


def test_a_variable_that_no_page_has_is_refused(tmp_path: Path) -> None:
    """A misspelt name would else draw all services in silence; those that there are stand in the message."""
    words = ["render", "inferwatch-slo", "--out", str(tmp_path / "out"), "--prometheus", "http://127.0.0.1:1"]
    answer = CliRunner().invoke(main, [*words, "--var", "servic=llm"])

    assert answer.exit_code == 1
    assert answer.output == (
        "Error: --var servic: no such variable on what is drawn; there are: instance, job, model, service\n"
    )
