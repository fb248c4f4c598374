"""The stages that a request can have -> how the span of each is named and marked."""

from typing import NamedTuple

from opentelemetry.trace import SpanKind


class StageKind(NamedTuple):
    """*operation*: the GenAI operation, which begins the span's name; "" where the conventions have none."""

    stage: str
    kind: SpanKind = SpanKind.INTERNAL
    openinference: str = "CHAIN"
    operation: str = ""

    def span_name(self, of: str | None) -> str:
        """`chat MODEL`, `embeddings MODEL`, `retrieval INDEX`; stages without a GenAI operation: `rag STAGE`."""
        if not self.operation:
            return f"rag {self.stage}"
        return f"{self.operation} {of}" if of else self.operation


class UnknownStage(ValueError):
    """A stage that is not in the list: stages become label values, so the list is closed."""


_KINDS = (
    StageKind("receive"),
    StageKind("tokenize"),
    StageKind("schedule"),
    StageKind("execute"),
    StageKind("detokenize"),
    StageKind("respond"),
    StageKind("embedding", openinference="EMBEDDING", operation="embeddings"),
    StageKind("retrieval", openinference="RETRIEVER", operation="retrieval"),
    StageKind("rerank", openinference="RERANKER"),
    StageKind("assemble"),
    StageKind("generate", SpanKind.CLIENT, "LLM", "chat"),
)
_BY_NAME = {kind.stage: kind for kind in _KINDS}
STAGES = tuple(_BY_NAME)


def kind_of(stage: str) -> StageKind:
    """The kind of a stage; UnknownStage names those that exist."""
    try:
        return _BY_NAME[stage]
    except KeyError:
        raise UnknownStage(f"{stage!r} is no stage; use one of {', '.join(STAGES)}") from None
