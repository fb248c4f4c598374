"""The command line: subcommands are imported only when used, and what a person can mend is one clean message."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from inferwatch.cli import COMMANDS, _about_files, main
from inferwatch.commands import gen
from inferwatch.commands.status import lines
from inferwatch.stack import checks, generated
from inferwatch.stack.checks import Fault
from inferwatch.stack.health import EngineHealth, ServiceHealth, Status

RUNNER = CliRunner()


def test_help_lists_every_command_and_imports_none() -> None:
    """`inferwatch --help` is quick: it loads no part of the project."""
    code = (
        "import sys; from click.testing import CliRunner; from inferwatch.cli import main;"
        "print(CliRunner().invoke(main, ['--help']).output);"
        "print(sorted(name for name in sys.modules if name.startswith(('inferwatch.', 'slo', 'exporters', 'yaml'))))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "['inferwatch.cli']" in answer.stdout
    for name in ("up", "status", "down", "check", "gen"):
        assert f"\n  {name} " in answer.stdout


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: str(entry.name))
def test_every_listed_command_exists_and_explains_itself(entry: object) -> None:
    """Each entry of the table names a module with a click command that has a help text."""
    found = importlib.import_module(entry.module).command  # type: ignore[attr-defined] # a Command

    assert isinstance(found, click.Command)
    assert found.help or found.get_short_help_str()
    assert RUNNER.invoke(main, [entry.name, "--help"]).exit_code == 0  # type: ignore[attr-defined] # a Command


def test_an_unknown_command_is_a_usage_error() -> None:
    """A misspelt subcommand exits with 2."""
    answer = RUNNER.invoke(main, ["upp"])

    assert answer.exit_code == 2
    assert "No such command 'upp'" in answer.output


@pytest.mark.parametrize(
    "words",
    [
        ["export", "rules", "--out"],
        ["export", "k8s", "--image", "a/b:1", "--engine", "http://vllm.models:8000", "--out"],
        ["up", "--dir"],
        ["status", "--dir"],
    ],
    ids=" ".join,
)
def test_a_folder_that_cannot_be_is_one_line_without_traceback(words: list[str], tmp_path: Path) -> None:
    """Below a file no folder can be made: the path and why, whichever command was asked."""
    (tmp_path / "file").write_text("")
    answer = RUNNER.invoke(main, [*words, str(tmp_path / "file" / "folder")])

    assert answer.exit_code == 1
    assert answer.output.startswith(f"Error: {tmp_path}/file")
    assert "Not a directory; is the path right" in answer.output


def test_an_error_that_nobody_can_mend_keeps_its_traceback() -> None:
    """A connection that broke inside of us is a fault of ours, not a word about files."""
    assert _about_files(ConnectionResetError(104, "Connection reset by peer")) is None
    assert _about_files(OSError(28, "No space left on device")) == (
        "No space left on device; free some space, or write elsewhere"
    )


def test_a_wrong_engine_is_one_line_without_traceback(tmp_path: Path) -> None:
    """What a person can mend is said in one message, with exit status 1."""
    answer = RUNNER.invoke(main, ["up", "vlm", "--dir", str(tmp_path)])

    assert answer.exit_code == 1
    assert answer.output == (
        "Error: 'vlm' is neither sim nor vllm-cpu nor a URL like http://127.0.0.1:8000\n"
    )


def test_a_wrong_base_port_names_its_range(tmp_path: Path) -> None:
    """A port below 1024 or too near the end is refused."""
    answer = RUNNER.invoke(main, ["up", "--base-port", "80", "--dir", str(tmp_path)])

    assert answer.exit_code == 1
    assert answer.output == "Error: base port 80: choose one from 1024 to 65400\n"


def test_accept_without_attached_engines_accepts_nothing(tmp_path: Path) -> None:
    """What nobody has seen is not accepted by accident, for engines that are attached later; by its name it is."""
    answer = RUNNER.invoke(main, ["slo", "accept", "--dir", str(tmp_path)])
    assert (answer.exit_code, list(tmp_path.iterdir())) == (1, [])
    assert "nothing is observed" in answer.output and "`inferwatch up URL…`" in answer.output

    named = RUNNER.invoke(main, ["slo", "accept", "--service", "llm", "--dir", str(tmp_path)])
    assert named.exit_code == 0 and "llm: accepted:" in named.output


def test_status_of_nothing_exits_with_3(tmp_path: Path) -> None:
    """A script can tell `nothing was started` from `something is broken`."""
    answer = RUNNER.invoke(main, ["status", "--dir", str(tmp_path)])

    assert (answer.exit_code, answer.output) == (3, "nothing is running; start it with `inferwatch up`\n")


def test_status_columns_stand_under_each_other() -> None:
    """The longest name sets the width: `pid` stands in one column."""
    services = [
        ServiceHealth(name, "ready", f"http://127.0.0.1:{port}", 7, "log")
        for name, port in (("engine", 80), ("exporter-of-something-long", 29999))
    ]
    found = Status(tuple(services), (EngineHealth("http://127.0.0.1:8000", "up"),), (), (), None)

    shown = [line for line in lines(found) if " pid " in line]

    assert len({line.index(" pid ") for line in shown}) == 1 and len(shown) == 2


def test_status_as_json_is_one_object(tmp_path: Path) -> None:
    """Programs read the same facts."""
    answer = RUNNER.invoke(main, ["status", "--json", "--dir", str(tmp_path)])

    assert json.loads(answer.output) == {
        "services": [],
        "engines": [],
        "firing": None,
        "notifications": [],
        "sign_of_life": None,
    }


def test_down_of_nothing_is_not_an_error(tmp_path: Path) -> None:
    """Ending what does not run is fine, and said."""
    answer = RUNNER.invoke(main, ["down", "--dir", str(tmp_path)])

    assert (answer.exit_code, answer.output) == (0, "nothing of ours was running\n")


def test_gen_check_names_stale_files_and_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stale file is named; nothing is written; the exit status is 1."""
    asked: list[bool] = []

    def run(name: str, *, check: bool) -> list[str]:
        asked.append(check)
        return ["alerts/rules/stack.yaml"] if name == "alerts" else []

    monkeypatch.setattr(generated, "run", run)
    answer = RUNNER.invoke(gen.command, ["--check"])

    assert answer.exit_code == 1
    assert "stale alerts/rules/stack.yaml" in answer.output
    assert "1 generated files are stale; run `inferwatch gen` and commit" in answer.output
    assert asked == [True] * len(generated.names())


def test_check_gives_one_line_a_check_and_hides_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """One check that fails does not stop the next; the exit status says that something is wrong."""

    def bad(*_: object) -> str:
        raise Fault("stale: x; run `inferwatch gen`")

    monkeypatch.setattr(
        checks, "CHECKS", (("first", lambda *_: "fine"), ("second", bad), ("third", lambda *_: "fine"))
    )
    answer = RUNNER.invoke(main, ["check"])

    assert answer.exit_code == 1
    assert answer.output.splitlines() == [
        "ok    first            fine",
        "FAIL  second           stale: x; run `inferwatch gen`",
        "ok    third            fine",
        "Error: 1 of 3 checks fail: second",
    ]


def test_load_needs_an_engine(tmp_path: Path) -> None:
    """Without a running stack and without --url there is nothing to load."""
    answer = RUNNER.invoke(main, ["load", "--dir", str(tmp_path)])

    assert answer.exit_code == 1
    assert answer.output == (
        "Error: no stack runs here; start it with `inferwatch up`, or name an engine with --url\n"
    )


def test_load_with_two_kinds_of_arrival_is_refused(tmp_path: Path) -> None:
    """A closed and an open loop at once mean nothing."""
    words = ["load", "--url", "http://127.0.0.1:9", "--model", "m", "--users", "2", "--rate", "1"]
    answer = RUNNER.invoke(main, [*words, "--dir", str(tmp_path)])

    assert answer.exit_code == 2
    assert "--users and --rate are different kinds of arrival; give one of them" in answer.output


def test_a_faulty_plan_is_one_clean_message(tmp_path: Path) -> None:
    """Errors of the load harness are shown as ours: key, value, mend, no traceback."""
    words = ["load", "--url", "http://127.0.0.1:9", "--model", "m", "--users", "2", "--prompt-tokens", "x"]
    answer = RUNNER.invoke(main, [*words, "--dir", str(tmp_path)])

    assert answer.exit_code == 1
    assert answer.output.startswith("Error: options: prompt_tokens: 'x'")
    assert "Traceback" not in answer.output


def test_bench_knows_its_benchmarks() -> None:
    """A name that is no benchmark is refused with those that are."""
    answer = RUNNER.invoke(main, ["bench", "speed"])

    assert answer.exit_code == 2
    assert "'engine'" in answer.output
