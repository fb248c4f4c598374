"""Embeddings and retrievals -> HTTP bodies; numpy is used where the caller's vectors are arrays, else JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode


@dataclass(frozen=True)
class Body:
    """One POST: path with query, content type, and the bytes."""

    path: str
    content_type: str
    data: bytes


def vectors(batch: object, model: str, version: str, tenant: str) -> Body:
    """A batch of vectors: an array of shape (n, d), or a list of lists of numbers; raises TypeError, ValueError."""
    named = {"model": model, "version": version, "tenant": tenant}
    if hasattr(batch, "__array__"):
        import io

        import numpy as np

        array = np.asarray(batch)
        if array.ndim != 2 or array.dtype.kind not in "fiu":
            raise ValueError(
                f"vectors have shape {array.shape} and type {array.dtype}; give (n, dimension) numbers"
            )
        text = io.BytesIO()
        np.save(text, array.astype("<f4"))
        return Body(f"/v1/vectors?{urlencode(named)}", "application/x-npy", text.getvalue())
    if not isinstance(batch, Sequence) or isinstance(batch, str | bytes):
        raise TypeError(f"vectors are {type(batch).__name__}; give a list of lists of numbers or an array")
    return _json("/v1/vectors", {**named, "vectors": [list(one) for one in batch]})


def retrieval(
    scores: Sequence[float], seconds: float | None, query_characters: int | None, tenant: str
) -> Body:
    """One retrieval; raises TypeError, ValueError."""
    one: dict[str, Any] = {"scores": [float(score) for score in scores]}
    if seconds is not None:
        one["seconds"] = float(seconds)
    if query_characters is not None:
        one["query_characters"] = int(query_characters)
    return _json("/v1/retrievals", {"tenant": tenant, "retrievals": [one]})


def _json(path: str, document: Mapping[str, object]) -> Body:
    return Body(path, "application/json", json.dumps(document).encode())
