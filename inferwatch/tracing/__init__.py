"""Spans of an LLM service: a request, its stages, the stages of RAG, by the GenAI and OpenInference conventions.

Needs opentelemetry-api only, and nothing else of Inferwatch. Without an SDK every call is a no-op; `install` sets one
up. Prompts, completions and documents are never put on a span, nor the messages of exceptions.
"""

from inferwatch.tracing.edge import broken_traceparents, outgoing_headers, request
from inferwatch.tracing.handle import Handle, current
from inferwatch.tracing.kinds import STAGES, UnknownStage
from inferwatch.tracing.sdk import TracingSetupError, install
from inferwatch.tracing.span import Work
from inferwatch.tracing.stages import assemble, embedding, generate, rerank, retrieval, stage
from inferwatch.tracing.timing import TokenClock

__all__ = [
    "STAGES",
    "Handle",
    "TokenClock",
    "TracingSetupError",
    "UnknownStage",
    "Work",
    "assemble",
    "broken_traceparents",
    "current",
    "embedding",
    "generate",
    "install",
    "outgoing_headers",
    "request",
    "rerank",
    "retrieval",
    "stage",
]
