"""Generated files: written, compared, and cleared of what is left over."""

from pathlib import Path

import pytest

from dashboards import render
from dashboards.__main__ import main
from slo.spec import SpecError


def test_the_committed_files_are_fresh() -> None:
    """What stands in git is what the generator gives."""
    assert render.write(check=True) == []


def test_a_changed_or_missing_file_is_stale_and_is_mended(tmp_path: Path) -> None:
    """All are missing at first; then one is edited and one is left over from an older version."""
    first = render.write(root=tmp_path)
    assert f"{tmp_path.name}/json/inferwatch-slo.json" in first
    assert render.write(check=True, root=tmp_path) == []
    (tmp_path / "json" / "inferwatch-slo.json").write_text("{}\n", encoding="utf-8")
    (tmp_path / "json" / "old.json").write_text("{}\n", encoding="utf-8")
    stale = [f"{tmp_path.name}/json/inferwatch-slo.json", f"{tmp_path.name}/json/old.json"]
    assert render.write(check=True, root=tmp_path) == stale
    assert (tmp_path / "json" / "old.json").exists()
    assert render.write(root=tmp_path) == stale
    assert render.write(check=True, root=tmp_path) == []


def test_a_faulty_spec_stops_it(tmp_path: Path) -> None:
    """Nothing is written from half a spec."""
    (tmp_path / "slo.yaml").write_text("version: 1\n", encoding="utf-8")
    with pytest.raises(SpecError):
        render.write(root=tmp_path / "out", spec_path=tmp_path / "slo.yaml")
    assert not (tmp_path / "out").exists()


def test_the_module_says_that_all_is_fresh(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`python -m dashboards --check` exits 0."""
    monkeypatch.setattr("sys.argv", ["dashboards", "--check"])
    assert main() == 0
    assert "fresh" in capsys.readouterr().out
