"""What is sent to the drift exporter of a row, before and under a fault."""

from dataclasses import dataclass

MODEL, OTHER_MODEL = "synthetic-64", "synthetic-64-new"
"""The model that the reference is of, and one that there is none of."""


@dataclass(frozen=True)
class Sent:
    """
    What a service tells its exporter once a second.

    Attributes:
        model: the name that vectors come under.
        vectors: how many a second that can be used, in one batch.
        shifted: share of them that are about other topics.
        unusable: how many a second stand beside them in the batch that are NaN or zero, in turn.
        retrievals: how many a second.
        poor: share of them that find nothing, or nothing alike, in turn.
        retrieval_seconds: how long each is said to have taken.
    """

    model: str = MODEL
    vectors: int = 15
    shifted: float = 0.0
    unusable: int = 0
    retrievals: int = 2
    poor: float = 0.0
    retrieval_seconds: float = 0.05

    @property
    def unusable_ratio(self) -> float:
        """Share of all vectors that cannot be used."""
        return self.unusable / (self.vectors + self.unusable)

    def __str__(self) -> str:
        usual = Sent()
        parts = {
            f"model={self.model}": self.model != usual.model,
            f"shifted={self.shifted:g}": self.shifted > 0,
            f"unusable={self.unusable}": self.unusable > 0,
            f"poor={self.poor:g}": self.poor > 0,
            f"retrieval_seconds={self.retrieval_seconds:g}": self.retrieval_seconds
            != usual.retrieval_seconds,
        }
        return " ".join(text for text, is_said in parts.items() if is_said) or "as usual"
