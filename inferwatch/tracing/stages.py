"""The stages of a request and of a RAG pipeline, each as decorator and context manager with its attributes."""

from collections.abc import Mapping

from opentelemetry.trace import Tracer

from inferwatch.tracing import attributes as names
from inferwatch.tracing.handle import Value
from inferwatch.tracing.kinds import kind_of
from inferwatch.tracing.span import Work


def stage(
    name: str, *, of: str | None = None, attributes: Mapping[str, Value | None] | None = None,
    tracer: Tracer | None = None,
) -> Work:  # fmt: skip
    """
    A stage by name: receive, tokenize, schedule, execute, detokenize, respond, or one of RAG.

    *of*: the model or index that its span is named after. Raises UnknownStage.
    """
    kind = kind_of(name)
    found: dict[str, Value] = {names.STAGE: kind.stage, names.KIND: kind.openinference}
    if kind.operation:
        found[names.OPERATION] = kind.operation
    found.update({key: value for key, value in (attributes or {}).items() if value is not None})
    return Work(kind.span_name(of), kind.kind, found, tracer=tracer)


def embedding(model: str, version: str | None = None, *, dimension: int | None = None) -> Work:
    """Texts become vectors; *version* of the embedding model is what A/B and roll-backs are compared by."""
    return stage(
        "embedding",
        of=model,
        attributes={
            names.REQUEST_MODEL: model,
            names.EMBEDDING_VERSION: version,
            names.DIMENSIONS: dimension,
        },
    )


def retrieval(
    top_k: int, *, index: str | None = None, hybrid: bool = False, query_class: str | None = None,
    version: str | None = None,
) -> Work:  # fmt: skip
    """The *top_k* nearest are searched; *query_class* must come from a short closed list."""
    return stage(
        "retrieval",
        of=index,
        attributes={
            names.DATA_SOURCE: index,
            names.TOP_K: top_k,
            names.REQUEST_TOP_K: top_k,
            names.HYBRID: hybrid,
            names.QUERY_CLASS: query_class,
            names.EMBEDDING_VERSION: version,
        },
    )


def rerank(model: str | None = None, *, top_k: int | None = None, version: str | None = None) -> Work:
    """Found passages are put in a better order and the best *top_k* kept."""
    found = {names.REQUEST_MODEL: model, names.TOP_K: top_k, names.EMBEDDING_VERSION: version}
    return stage("rerank", attributes=found)


def assemble(*, version: str | None = None) -> Work:
    """Passages become a prompt of bounded length; see Handle.context."""
    return stage("assemble", attributes={names.EMBEDDING_VERSION: version})


def generate(
    model: str, *, provider: str | None = None, max_tokens: int | None = None, stream: bool | None = None,
    version: str | None = None,
) -> Work:  # fmt: skip
    """An engine is asked; inside, `outgoing_headers()` makes its spans children of this one."""
    return stage(
        "generate",
        of=model,
        attributes={
            names.REQUEST_MODEL: model,
            names.PROVIDER: provider,
            names.REQUEST_MAX_TOKENS: max_tokens,
            names.REQUEST_STREAM: stream,
            names.EMBEDDING_VERSION: version,
        },
    )
