"""Tools are taken from PATH, else the cache, else the distribution, else built; and every refusal has its reason."""

from pathlib import Path

import pytest

from inferwatch.stack import binaries, debian, gobuild
from inferwatch.stack.binaries import PARTS, Search
from inferwatch.stack.errors import StackError
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings


def fake(path: Path, version: str) -> Path:
    """A program that answers --version as Prometheus' do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho 'promtool, version {version} (branch: HEAD, revision: 1)'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A PATH with only the shell's folder and an empty one, no apt and no Go; returns the empty one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the Go build by one that makes fake programs; returns the list of builds."""
    done: list[str] = []

    def build(module: gobuild.GoModule, version: str, out: Path, *_: object) -> None:
        done.append(f"{module.name} {version}")
        for command in module.commands:
            fake(out / command, version)

    monkeypatch.setattr(gobuild, "build", build)
    return done


def test_a_new_enough_tool_on_path_wins(
    elsewhere: Path, settings: Settings, heard: Reporter, builds: list[str]
) -> None:
    """What the person installed is used before anything is fetched."""
    fake(settings.cache_dir / "prometheus-3.14.0" / "promtool", "3.14.0")
    mine = fake(elsewhere / "promtool", "3.15.1")

    found = binaries.resolve("promtool", settings, heard)
    assert (found.path, found.version, found.origin) == (mine, "3.15.1", "PATH")
    assert builds == []


def test_an_old_tool_on_path_gives_way_to_the_cache(
    elsewhere: Path, settings: Settings, heard: Reporter, builds: list[str]
) -> None:
    """A 2.x on PATH cannot stand in for the pinned 3.14.0."""
    fake(elsewhere / "promtool", "2.42.0")
    cached = fake(settings.cache_dir / "prometheus-3.14.0" / "promtool", "3.14.0")

    found = binaries.resolve("promtool", settings, heard)
    assert (found.path, found.origin) == (cached, "cache")
    assert builds == []


def test_nothing_there_is_built_once(
    elsewhere: Path, settings: Settings, heard: Reporter, builds: list[str]
) -> None:
    """The first tool of a part builds all its commands; the second comes from the cache."""
    first = binaries.resolve("promtool", settings, heard)
    second = binaries.resolve("prometheus", settings, heard)

    assert (first.origin, second.origin) == ("Go build", "cache")
    assert builds == ["prometheus 3.14.0"]


def test_a_new_enough_package_is_taken_before_building(
    elsewhere: Path, settings: Settings, heard: Reporter, builds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A distribution that ships 3.15 saves the build."""
    monkeypatch.setattr(debian, "candidate", lambda package: "3.15.0")
    monkeypatch.setattr(debian, "unpack", lambda package, out, *_: fake(out / "promtool", "3.15.0+ds"))

    found = binaries.resolve("promtool", settings, heard)
    assert (found.version, found.origin) == ("3.15.0+ds", "distribution's package")
    assert builds == []


def test_an_old_package_is_the_last_resort_and_said(
    elsewhere: Path, settings: Settings, heard: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Go the distribution's old build is used, aloud."""
    monkeypatch.setattr(debian, "candidate", lambda package: "2.42.0")
    monkeypatch.setattr(debian, "unpack", lambda package, out, *_: fake(out / "promtool", "2.42.0+ds"))

    found = binaries.resolve("promtool", settings, heard)
    assert found.version == "2.42.0+ds"
    assert "distribution's promtool 2.42.0 in place of 3.14.0" in heard.text  # type: ignore[attr-defined] # Heard


def test_the_old_package_can_be_asked_for(
    elsewhere: Path, settings: Settings, heard: Reporter, builds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CI checks rules with the distribution's promtool beside the pinned one."""
    fake(elsewhere / "promtool", "3.14.0")
    monkeypatch.setattr(debian, "candidate", lambda package: "2.42.0")
    monkeypatch.setattr(debian, "unpack", lambda package, out, *_: fake(out / "promtool", "2.42.0+ds"))

    found = binaries.from_distribution("promtool", settings, heard)
    assert found.version == "2.42.0+ds"
    assert builds == []


def test_when_nothing_works_each_source_gives_its_reason(
    elsewhere: Path, settings: Settings, heard: Reporter
) -> None:
    """The final error lists PATH, cache, package and build with their reasons, and the mend."""
    with pytest.raises(StackError) as caught:
        binaries.resolve("amtool", settings, heard)

    text = str(caught.value)
    assert "on PATH: not installed" in text
    assert "is not there yet" in text
    assert "apt knows no package prometheus-alertmanager" in text
    assert "no `go` on PATH; install Go" in text
    assert "Install amtool 0.34.0 on PATH, or Go, and try again." in text


def test_a_cached_file_that_does_not_run_is_built_anew(
    elsewhere: Path, settings: Settings, heard: Reporter, builds: list[str]
) -> None:
    """A broken cache entry is replaced, not used."""
    broken = settings.cache_dir / "prometheus-3.14.0" / "promtool"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"\x7fELF cut off")
    broken.chmod(0o755)

    assert binaries.resolve("promtool", settings, heard).origin == "Go build"
    assert builds == ["prometheus 3.14.0"]


def test_an_unknown_tool_is_refused(settings: Settings, heard: Reporter) -> None:
    """Only the tools of the pinned parts can be asked for."""
    with pytest.raises(
        StackError, match="'grafana' is not one of prometheus, promtool, alertmanager, amtool"
    ):
        binaries.resolve("grafana", settings, heard)


def test_a_silent_program_has_no_version(tmp_path: Path, settings: Settings, heard: Reporter) -> None:
    """A program of that name that names no version is not accepted for the pinned one."""
    path = tmp_path / "promtool"
    path.write_text("#!/bin/sh\necho hello\n")
    path.chmod(0o755)
    search = Search("promtool", PARTS[0], "3.14.0", settings.cache_dir, heard, {"PATH": str(tmp_path)})

    with pytest.raises(binaries.Unavailable, match=r"is version unknown, wanted 3\.14\.0 or newer"):
        binaries.on_path(search)
