"""A copied answer of an embedding server -> model and checked vectors; imported by the decoder's process alone.

It needs numpy and nothing heavier, so that the process is there in a moment.
"""

import zlib

from exporters.drift.vectors import Checked, check
from exporters.drift.wire import WireError, embeddings

_WINDOW_BITS = {"gzip": 31, "deflate": 15}
_MOST_TIMES = 64
"""Embeddings shrink to a third at best; what grows this much is an attack on our memory."""


def decode(body: bytes, encoding: str) -> tuple[str, Checked]:
    """An embedding answer -> model and checked vectors; runs in the decoder's process. Raises WireError."""
    try:
        if encoding in _WINDOW_BITS:
            body = _unpacked(body, encoding)
        elif encoding:
            raise WireError(f"Content-Encoding {encoding!r} is not read")
    except zlib.error as error:
        raise WireError(f"not {encoding} ({error})") from error
    model, vectors = embeddings(body)
    return model, check(vectors)


def _unpacked(body: bytes, encoding: str) -> bytes:
    """Every member of *body*; WireError when they are far larger than any answer, or end too early."""
    left = _MOST_TIMES * len(body)
    parts: list[bytes] = []
    while body:
        one = zlib.decompressobj(_WINDOW_BITS[encoding])
        parts.append(one.decompress(body, left + 1))
        left -= len(parts[-1])
        if left < 0:
            raise WireError(f"{encoding}: over {_MOST_TIMES} times as large when unpacked")
        if not one.eof:
            raise WireError(f"not {encoding} (it ends too early)")
        body = one.unused_data
    return b"".join(parts)
