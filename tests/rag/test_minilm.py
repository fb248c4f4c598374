"""The sentence model, held against what transformers made of the same weights and texts."""

import json
from pathlib import Path

import numpy as np
import pytest

from rag.minilm import ModelError, SentenceModel

TINY = Path(__file__).parents[1] / "fixtures" / "rag" / "tiny-bert"
EXPECTED = json.loads((TINY / "expected.json").read_text())


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_vectors_are_transformers_own(pooling):
    """Three texts of unequal length in one padded batch; transformers 5.19 encoded each alone."""
    made = SentenceModel(TINY, pooling=pooling).encode([one["text"] for one in EXPECTED])
    for row, one in zip(made.vectors, EXPECTED, strict=True):
        assert np.abs(row - np.array(one[pooling])).max() < 2e-6


def test_each_token_but_the_markers_has_a_vector_of_length_one():
    """[CLS] and [SEP] are left out; the counts are the tokenizer's."""
    made = SentenceModel(TINY).encode([one["text"] for one in EXPECTED])
    assert [len(one) for one in made.tokens] == [one["tokens"] for one in EXPECTED]
    for one in made.tokens:
        assert np.abs(np.linalg.norm(one, axis=1) - 1).max() < 1e-5


def test_a_text_longer_than_the_model_is_cut_and_not_refused():
    """64 positions; 500 words."""
    assert np.isfinite(SentenceModel(TINY).encode(["cat " * 500]).vectors).all()


def test_a_folder_without_a_model_is_named(tmp_path):
    """The error says which files are missing."""
    with pytest.raises(ModelError, match=r"config\.json, model\.safetensors, tokenizer\.json missing"):
        SentenceModel(tmp_path)


def test_another_architecture_is_refused(tmp_path):
    """Weights of another kind would give numbers without meaning."""
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(ModelError, match="model_type 'llama'"):
        SentenceModel(tmp_path)
