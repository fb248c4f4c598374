"""A copied answer of an embedding server -> model and checked vectors; imported by the decoder's process alone.

It needs numpy and nothing heavier, so that the process is there in a moment.
"""

import gzip
import zlib

from exporters.drift.vectors import Checked, check
from exporters.drift.wire import WireError, embeddings


def decode(body: bytes, encoding: str) -> tuple[str, Checked]:
    """An embedding answer -> model and checked vectors; runs in the decoder's process. Raises WireError."""
    try:
        if encoding == "gzip":
            body = gzip.decompress(body)
        elif encoding == "deflate":
            body = zlib.decompress(body)
        elif encoding:
            raise WireError(f"Content-Encoding {encoding!r} is not read")
    except (OSError, EOFError, zlib.error) as error:
        raise WireError(f"not {encoding} ({error})") from error
    model, vectors = embeddings(body)
    return model, check(vectors)
