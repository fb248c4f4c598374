"""Writing the generated files, and finding those that are stale."""

from pathlib import Path

from alerts.render import write


def test_what_is_committed_is_current() -> None:
    """`python -m alerts --check` finds nothing to do."""
    assert write(check=True) == []


def test_a_check_writes_nothing_and_a_run_writes_all(tmp_path: Path) -> None:
    """On an empty folder everything is stale; after a run nothing is."""
    stale = write(check=True, root=tmp_path)

    assert "alerts/rules/stack.yaml" in stale and "docs/alerts.md" in stale
    assert list(tmp_path.rglob("*")) == []
    assert write(check=False, root=tmp_path) == stale
    assert write(check=True, root=tmp_path) == []


def test_a_file_that_nothing_generates_is_removed(tmp_path: Path) -> None:
    """Rules of a service that was renamed would go on firing."""
    write(check=False, root=tmp_path)
    left = tmp_path / "alerts" / "rules" / "service-gone-base.yaml"
    left.write_text("groups: []\n", encoding="utf-8")

    assert write(check=True, root=tmp_path) == ["alerts/rules/service-gone-base.yaml"]
    write(check=False, root=tmp_path)
    assert not left.exists()


def test_a_changed_file_is_stale(tmp_path: Path) -> None:
    """An edit by hand is found, and undone."""
    write(check=False, root=tmp_path)
    stack = tmp_path / "alerts" / "rules" / "stack.yaml"
    before = stack.read_text(encoding="utf-8")
    stack.write_text(before.replace("severity: page", "severity: ticket"), encoding="utf-8")

    assert write(check=False, root=tmp_path) == ["alerts/rules/stack.yaml"]
    assert stack.read_text(encoding="utf-8") == before
    assert "DO NOT EDIT" in before.splitlines()[0]
