"""A vector from an embedding model -> usable, or why not: no NaN gets into an index, a score or a metric."""

import numpy as np

from rag.minilm import Array

REASONS = ("empty", "dimension", "nan", "inf", "zero")


class BadVector(ValueError):
    """A vector of no use."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.error_type = f"vector_{reason}"


def usable(vector: Array, dimension: int) -> Array:
    """The vector at length 1. Raises BadVector."""
    if vector.size == 0:
        raise BadVector("empty", "the embedding model gave no numbers")
    if vector.shape != (dimension,):
        raise BadVector(
            "dimension",
            f"the embedding model gave {vector.shape[-1]} numbers and the index holds vectors of {dimension}; "
            "was the model swapped? The index must be built anew",
        )
    if np.isnan(vector).any():
        raise BadVector("nan", "the embedding model gave NaN")
    if np.isinf(vector).any():
        raise BadVector("inf", "the embedding model gave infinity")
    length = float(np.linalg.norm(vector))
    if length == 0:
        raise BadVector("zero", "the embedding model gave zeros only")
    made: Array = (vector / np.float32(length)).astype(np.float32)
    return made
