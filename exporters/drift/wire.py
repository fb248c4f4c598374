"""Bodies of the ingest port -> batches: JSON, npy, Arrow. What cannot be read raises WireError."""

import base64
import binascii
import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from exporters.drift import arrow
from exporters.drift.vectors import Batch

JSON = "application/json"
NPY = "application/x-npy"
ARROW = "application/vnd.apache.arrow.stream"


class WireError(ValueError):
    """A body that cannot be read; the text says what was wrong and what to send."""


def batch(content_type: str, body: bytes, query: Mapping[str, str]) -> Batch:
    """
    A body of POST /v1/vectors.

    JSON: {"model", "vectors", "version"?, "tenant"?}; npy and Arrow carry vectors, and the rest stands in the
    query. Arrow: an IPC stream, its batches not compressed, whose column `vector` holds lists of floats.
    """
    if content_type == JSON:
        document = json_object(body)
        if not isinstance(document.get("vectors"), list):
            raise WireError('no list `vectors`; send {"model": …, "vectors": [[…], …]}')
        return _batch(document, document["vectors"])
    if content_type not in (NPY, ARROW):
        raise WireError(f"Content-Type {content_type!r}; send {JSON}, {NPY} or {ARROW}")
    vectors: object = _npy(body) if content_type == NPY else _arrow(body)
    return _batch(dict(query), vectors)


def _batch(document: Mapping[str, Any], vectors: object) -> Batch:
    return Batch(_text(document, "model"), _text(document, "version"), _text(document, "tenant"), vectors)


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key, "")
    if not isinstance(value, str) or (key == "model" and not value):
        raise WireError(
            f"{key} is {value!r}; send a string" + (", the model's name" if key == "model" else "")
        )
    return value


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is; raises WireError."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise WireError(f"not JSON ({error})") from error
    if not isinstance(document, dict):
        raise WireError("not a JSON object")
    return document


def _npy(body: bytes) -> np.ndarray:
    try:
        # Not np.load, which opens archives too.
        found = np.lib.format.read_array(io.BytesIO(body), allow_pickle=False)
    except Exception as error:  # numpy evaluates the header: a hostile one raises whatever it likes
        raise WireError(f"not an npy array ({error})") from error
    if found.ndim != 2 or found.dtype.kind not in "fiu" or not found.shape[1]:
        raise WireError("not a 2-dimensional npy array of numbers; send np.save of shape (n, dimension)")
    return found


def _arrow(body: bytes) -> list[Any]:
    try:
        return arrow.rows(body)
    except ImportError:
        raise WireError(
            "pyarrow is not installed beside the exporter; install it, or send JSON or npy"
        ) from None
    except arrow.ArrowError as error:
        raise WireError(str(error)) from error


def embeddings(body: bytes) -> tuple[str, list[Any]]:
    """
    An answer of /v1/embeddings -> its model and raw vectors (lists, or float32 arrays where base64 was asked).

    Raises WireError for what is no such answer.
    """
    document = json_object(body)
    data = document.get("data")
    if not isinstance(data, list):
        raise WireError("no list `data`")
    vectors: list[Any] = []
    for one in data:
        vector = one.get("embedding") if isinstance(one, dict) else None
        if isinstance(vector, str):
            try:
                vector = np.frombuffer(base64.b64decode(vector, validate=True), dtype="<f4")
            except (binascii.Error, ValueError):
                vector = None
        vectors.append(vector)
    model = document.get("model")
    return (model if isinstance(model, str) else ""), vectors
