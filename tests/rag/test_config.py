"""rag.yml and flags."""

import pytest

from rag.config import Config, ConfigError, load


def test_every_key_may_be_left_out_and_flags_go_over_the_file(tmp_path):
    """A flag that was not given changes nothing."""
    path = tmp_path / "rag.yml"
    path.write_text("engine: {url: 'http://127.0.0.1:1/', model: a}\n")
    config = load(path, {"engine.model": "b", "listen": None, "faults": True})
    assert (config.engine.url, config.engine.model, config.faults) == ("http://127.0.0.1:1", "b", True)
    assert load(None, {}) == Config()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[", "cannot be read as YAML"),
        ("- a", "holds a list"),
        ("engin: {}", r"engin: Extra inputs.*"),
        ("engine: {url: here}", r"engine\.url: is no base URL.*value 'here'"),
        ("embeddings: []", "name at least one"),
        ("embeddings: [{version: a}, {version: a}]", "each once"),
        ("embeddings: [{share: 0}]", "every share is 0"),
        ("embeddings: [{version: 'a b'}]", r"embeddings\.0\.version"),
        ("retrieval: {top_k: 2, keep: 3}", "keep is larger than top_k"),
        ("context: {truncate: left}", r"context\.truncate: Input should be 'head', 'tail' or 'middle'"),
    ],
)
def test_a_fault_is_named_with_file_key_and_value(tmp_path, text, says):
    """One line for each fault."""
    path = tmp_path / "rag.yml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=says) as caught:
        load(path, {})
    assert str(path) in str(caught.value)
