"""GitHub workflows held against what they name: scripts, make targets, files that the gate writes; safe in a fork."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
GATE = ROOT / ".github" / "workflows" / "load-gate.yml"


def _read(path: Path) -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def _steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in _read(path)["jobs"].values() for step in job["steps"]]


def _step(name: str) -> dict[str, Any]:
    """The one step of the gate's workflow that uses the action of that name."""
    (found,) = (step for step in _steps(GATE) if step.get("uses", "").startswith(f"actions/{name}@"))
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_is_run_is_there(path: Path) -> None:
    """Scripts are executable files of the checkout, make targets are in the Makefile."""
    words = [step["run"].split() for step in _steps(path) if "run" in step]
    scripts = [ROOT / one[0] for one in words if one[0].startswith(".ci/")]
    targets = [one[1] for one in words if one[0] == "make"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert scripts
    assert all(script.is_file() and os.access(script, os.X_OK) for script in scripts)
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_pull_request_from_a_fork_gets_nothing_it_could_abuse(path: Path) -> None:
    """Code of a fork runs with a token that reads, without secrets, and leaves no credentials in the checkout."""
    workflow = _read(path)
    text = path.read_text(encoding="utf-8")
    triggers = workflow[True]  # YAML 1.1 reads the key `on` as a boolean
    checkouts = [step for step in _steps(path) if step.get("uses", "").startswith("actions/checkout@")]

    assert "pull_request" in triggers and "pull_request_target" not in triggers
    assert "secrets." not in text
    assert workflow["permissions"] == {}
    assert checkouts and all(step["with"]["persist-credentials"] is False for step in checkouts)
    for job in workflow["jobs"].values():
        if any(step.get("uses", "").startswith("actions/checkout@") for step in job["steps"]):
            assert job["permissions"] == {"contents": "read"}


def test_only_pull_requests_of_this_repository_are_commented() -> None:
    """The job that may write runs no code of the checkout, and not for forks."""
    job = _read(GATE)["jobs"]["comment"]

    assert job["permissions"] == {"pull-requests": "write"}
    assert "head.repo.full_name == github.repository" in job["if"]
    assert [step.get("uses", step.get("run", "")).split("@")[0].split()[0] for step in job["steps"]] == [
        "actions/download-artifact",
        "gh",
    ]


def test_the_artifact_is_what_the_gate_writes() -> None:
    """The paths lie in the script's own folder, hidden as it is, and the comment finds its table at the top."""
    script = (ROOT / ".ci" / "gate").read_text(encoding="utf-8")
    default = re.search(r"\$\{2:-(\S+?)\}", script)
    upload, download = _step("upload-artifact"), _step("download-artifact")
    paths = [Path(line) for line in upload["with"]["path"].split()]
    (comment,) = (step["run"] for step in _read(GATE)["jobs"]["comment"]["steps"] if "run" in step)
    table = re.search(r"--body-file (\S+)", comment)

    assert default is not None and table is not None
    assert all(f'"$OUT/{path.name}' in script for path in paths)
    assert {path.parent for path in paths} == {Path(default[1])}
    assert upload["with"]["include-hidden-files"] is True
    assert upload["if"] == "always()"
    assert upload["with"]["name"] == download["with"]["name"]
    assert Path(default[1], table[1]) in paths
