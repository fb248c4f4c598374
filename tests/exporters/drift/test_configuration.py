"""The exporter's file and command line: what stands over what, and what is refused before anything listens."""

from pathlib import Path

import pytest

from exporters.configfile import ConfigError
from exporters.drift.config import Config, Ingest, Tap, load_config, references
from exporters.drift.profile import Profile, save
from exporters.drift.server import main, prepare
from slo.signals import Drift


def test_an_ingest_port_beyond_loopback_needs_a_token(tmp_path: Path, drift: Drift) -> None:
    """Open to the network and without a token: refused before anything listens."""
    with pytest.raises(ConfigError, match="is not loopback and ingest"):
        prepare(Config(ingest=Ingest(listen="0.0.0.0:9484")), tmp_path, drift)


def test_addresses_of_the_command_line_stand_over_those_of_the_file() -> None:
    """A container listens on all addresses, whatever the mounted file says; a tap that is not there is not made."""
    both = Config(tap=Tap(upstream="http://127.0.0.1:8000")).at("0.0.0.0:1", "0.0.0.0:2")

    assert both.tap is not None
    assert (both.ingest.listen, both.tap.listen) == ("0.0.0.0:1", "0.0.0.0:2")
    assert Config().at(None, "0.0.0.0:2") == Config()


def test_a_reference_of_another_model_is_an_error(tmp_path: Path, profile: Profile) -> None:
    """The file wants embed-b, the profile is of embed-a."""
    save(profile, tmp_path / "p.npz")
    (tmp_path / "drift.yml").write_text("references: [{file: p.npz, model: embed-b}]\n")

    with pytest.raises(ConfigError, match="is of model 'embed-a', wanted is 'embed-b'"):
        references(load_config(tmp_path / "drift.yml"), tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tap: {upstream: localhost}", "is no base URL"),
        ("references: [{file: nowhere.npz}]", "nowhere.npz: is not there"),
        ("ingest: {token_file: nowhere}", "ingest.token_file"),
        ("windows: 3", "unknown key"),
    ],
)
def test_configuration_errors_end_with_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    """One line that names the key and the mend, no traceback."""
    (tmp_path / "drift.yml").write_text(text + "\n")

    assert main(["--config", str(tmp_path / "drift.yml"), "--listen", "127.0.0.1:0"]) == 2
    assert says in capsys.readouterr().err
