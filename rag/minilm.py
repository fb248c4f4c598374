"""A BERT sentence model's folder (all-MiniLM-L6-v2 and its like) -> vectors of texts and of their tokens, in numpy.

The forward pass of the published architecture (Devlin et al., arXiv:1810.04805), so that the service needs no torch.
Held against transformers' own output in the tests.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from tokenizers import Tokenizer

Array = npt.NDArray[np.float32]
POOLINGS = ("mean", "cls")
_NEEDED = ("config.json", "model.safetensors", "tokenizer.json")
_MASKED = np.float32(-1e9)
# erf by Abramowitz & Stegun 7.1.26 (error below 1.5e-7): numpy has none.
_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)


class ModelError(ValueError):
    """A folder that holds no model this code can run; the text says what is wrong with it."""


class Encoded(NamedTuple):
    """*vectors*: (texts, dimension), length 1. *tokens*: for each text (its tokens, dimension), each of length 1."""

    vectors: Array
    tokens: list[Array]


class SentenceModel:
    """Loads once, encodes many; safe to use from several threads."""

    def __init__(self, folder: Path, *, pooling: str = "mean", max_tokens: int = 256) -> None:
        if pooling not in POOLINGS:
            raise ModelError(f"pooling {pooling!r}: use {' or '.join(POOLINGS)}")
        if missing := [name for name in _NEEDED if not (folder / name).is_file()]:
            raise ModelError(
                f"{folder}: {', '.join(missing)} missing; give the folder of a BERT sentence model"
            )
        config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if config.get("model_type") != "bert":
            raise ModelError(f"{folder}: model_type {config.get('model_type')!r}; only bert is run here")
        self._weights = {
            k.removeprefix("bert."): v for k, v in load_file(folder / "model.safetensors").items()
        }
        self._layers, self._heads = int(config["num_hidden_layers"]), int(config["num_attention_heads"])
        self._epsilon = np.float32(config["layer_norm_eps"])
        self.dimension = int(config["hidden_size"])
        self._pooling = pooling
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(min(max_tokens, int(config["max_position_embeddings"])))
        self._tokenizer.enable_padding(pad_id=int(config.get("pad_token_id") or 0))

    def encode(self, texts: list[str], batch: int = 16) -> Encoded:
        """Vectors of *texts*, the shorter first so that batches hold little padding; order is kept."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        tokens: list[Array] = [np.zeros((0, self.dimension), np.float32)] * len(texts)
        order = sorted(range(len(texts)), key=lambda n: len(texts[n]))
        for begin in range(0, len(order), batch):
            some = order[begin : begin + batch]
            hidden, mask = self._forward([texts[n] for n in some])
            pooled = hidden[:, 0] if self._pooling == "cls" else _mean(hidden, mask)
            for row, n in enumerate(some):
                vectors[n] = _unit(pooled[row])
                # Without [CLS] and [SEP], which stand at both ends of each text.
                tokens[n] = _unit(hidden[row, 1 : int(mask[row].sum()) - 1])
        return Encoded(vectors, tokens)

    def _forward(self, texts: list[str]) -> tuple[Array, Array]:
        """Last hidden states (texts, length, dimension) and the mask (texts, length)."""
        encodings = self._tokenizer.encode_batch(texts)
        ids = np.array([one.ids for one in encodings])
        mask = np.array([one.attention_mask for one in encodings], np.float32)
        w = self._weights
        hidden = (
            w["embeddings.word_embeddings.weight"][ids]
            + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
            + w["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = self._norm(hidden, "embeddings.LayerNorm")
        bias = ((1 - mask) * _MASKED)[:, None, None, :]
        for number in range(self._layers):
            hidden = self._layer(hidden, bias, f"encoder.layer.{number}.")
        return hidden, mask

    def _layer(self, hidden: Array, bias: Array, name: str) -> Array:
        texts, length, width = hidden.shape
        size = width // self._heads

        def split(part: str) -> Array:
            made = self._linear(hidden, f"{name}attention.self.{part}")
            return made.reshape(texts, length, self._heads, size).transpose(0, 2, 1, 3)

        scores = split("query") @ split("key").swapaxes(-1, -2) / np.float32(np.sqrt(size)) + bias
        seen = (_softmax(scores) @ split("value")).transpose(0, 2, 1, 3).reshape(texts, length, width)
        attended = self._linear(seen, f"{name}attention.output.dense") + hidden
        attended = self._norm(attended, f"{name}attention.output.LayerNorm")
        inner = _gelu(self._linear(attended, f"{name}intermediate.dense"))
        return self._norm(self._linear(inner, f"{name}output.dense") + attended, f"{name}output.LayerNorm")

    def _linear(self, x: Array, name: str) -> Array:
        made: Array = x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return made

    def _norm(self, x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(-1, keepdims=True) + self._epsilon)
        made: Array = centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return made


def _mean(hidden: Array, mask: Array) -> Array:
    made: Array = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    return made


def _unit(x: Array) -> Array:
    """Of length 1; a zero vector stays zero, and the caller refuses it."""
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    made: Array = x / np.maximum(length, np.float32(1e-12))
    return made


def _softmax(x: Array) -> Array:
    raised = np.exp(x - x.max(-1, keepdims=True))
    made: Array = raised / raised.sum(-1, keepdims=True)
    return made


def _gelu(x: Array) -> Array:
    z = np.abs(x) * np.float32(np.sqrt(0.5))
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = np.zeros_like(t)
    for factor in reversed(_ERF):
        series = (series + np.float32(factor)) * t
    erf = np.sign(x) * (1 - series * np.exp(-z * z))
    made: Array = np.float32(0.5) * x * (1 + erf)
    return made
