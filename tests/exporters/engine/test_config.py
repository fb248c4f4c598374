"""engine.yml: what is read, and what each fault is told."""

import pytest

from exporters.configfile import ConfigError
from exporters.engine.config import load_config


@pytest.fixture
def write(tmp_path):
    """Text -> the path of a file with it."""

    def run(text):
        path = tmp_path / "engine.yml"
        path.write_text(text)
        return path

    return run


def test_the_shipped_file_allows_loopback_over_http_only():
    """Nothing but this machine can be read before somebody says so."""
    config = load_config()
    assert {(entry.scheme, str(entry.network)) for entry in config.allow} == {
        ("http", "127.0.0.0/8"),
        ("http", "::1/128"),
    }
    assert config.modules["default"].timeout_s == 10
    assert config.modules["default"].max_body_bytes == 4194304


def test_an_empty_file_allows_nothing(write):
    """Denied unless allowed: no list, no target."""
    config = load_config(write(""))
    assert config.allow == ()
    assert set(config.modules) == {"default"}


def test_module_files_start_at_the_file_s_folder(write, tmp_path):
    """A relative path is the file's neighbour; an absolute one is left alone."""
    config = load_config(write("modules: {default: {bearer_token_file: token, ca_file: /etc/ca.pem}}"))
    assert config.modules["default"].bearer_token_file == tmp_path / "token"
    assert str(config.modules["default"].ca_file) == "/etc/ca.pem"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("allows: []", ["allows: unknown key", "mend its spelling"]),
        ("allow: [{scheme: http, host: a}]", ["allow[0].ports: missing", "add it"]),
        ("allow: [{scheme: ftp, host: a, ports: [1]}]", ["allow[0].scheme", "'http' or 'https'", "'ftp'"]),
        ("allow: [{scheme: http, host: '*.x', ports: [1]}]", ["allow[0].host", "write a CIDR", "'*.x'"]),
        ("allow: [{scheme: http, host: 10.0.0.1/8, ports: [1]}]", ["allow[0].host", "host bits set"]),
        ("allow: [{scheme: http, host: 10.0.0.300, ports: [1]}]", ["allow[0].host", "10.0.0.300"]),
        ("allow: [{scheme: http, host: a, ports: [0]}]", ["allow[0].ports", "port 0 is not 1 to 65535"]),
        ("allow: [{scheme: http, host: a, ports: [9-5]}]", ["allow[0].ports", "'9-5'"]),
        ("allow: [{scheme: http, host: a, ports: []}]", ["allow[0].ports", "at least 1 item"]),
        ("modules: {x: {}}", ["no module 'default'", "add one"]),
        ("modules: {default: {adapter: tgi}}", ["modules.default.adapter", "auto, vllm", "'tgi'"]),
        ("modules: {default: {timeout_s: 0}}", ["modules.default.timeout_s", "greater than 0"]),
        ("modules: {default: {max_series: many}}", ["modules.default.max_series", "'many'"]),
        ("modules: {default: {cert_file: a}}", ["modules.default", "give both or neither"]),
        ("models: {a: [x], b: [x]}", ["'x' stands under 'a' and 'b'", "keep one"]),
        ("allow: [}", ["engine.yml:1", "not YAML"]),
        ("allow: []\nallow: []", ["engine.yml:2", "'allow' stands twice"]),
        ("- 1", ["holds a list"]),
    ],
)
def test_each_fault_names_file_key_value_and_mend(write, text, parts):
    """The message of every fault leads to the line to change."""
    path = write(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    for part in [str(path), *parts]:
        assert part in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    """The path and the system's reason."""
    with pytest.raises(ConfigError, match=r"nowhere\.yml: cannot be read \(No such file"):
        load_config(tmp_path / "nowhere.yml")
