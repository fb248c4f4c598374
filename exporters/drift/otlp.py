"""OTLP/HTTP spans of the embedding stage -> batches of the vectors that they carry.

Read are spans with either a string `inferwatch.embedding.vectors` (base64 of little-endian float32, row
after row) beside `gen_ai.embeddings.dimension.count`, or OpenInference's arrays
`embedding.embeddings.<n>.embedding.vector`. The model stands in gen_ai.response.model, gen_ai.request.model or
embedding.model_name; version and tenant in inferwatch.embedding.version and inferwatch.tenant.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from exporters.drift.vectors import Batch
from exporters.drift.wire import JSON, WireError, json_object

PROTOBUF = "application/x-protobuf"
VECTORS = "inferwatch.embedding.vectors"
DIMENSION = "gen_ai.embeddings.dimension.count"
VERSION = "inferwatch.embedding.version"
TENANT = "inferwatch.tenant"
MODELS = ("gen_ai.response.model", "gen_ai.request.model", "embedding.model_name")
_OPENINFERENCE = re.compile(r"^embedding\.embeddings\.\d+\.embedding\.vector$")


def batches(content_type: str, body: bytes) -> list[Batch]:
    """The batches of an ExportTraceServiceRequest; spans without vectors give none. Raises WireError."""
    found = []
    for attributes in _spans(content_type, body):
        vectors = _vectors(attributes)
        if vectors is not None:
            model = next((str(attributes[key]) for key in MODELS if attributes.get(key)), "")
            version, tenant = (str(attributes.get(key, "")) for key in (VERSION, TENANT))
            found.append(Batch(model, version, tenant, vectors))
    return found


def _spans(content_type: str, body: bytes) -> Iterator[Mapping[str, Any]]:
    document = _document(content_type, body)
    try:
        for resource in document.get("resourceSpans", []):
            for scope in resource.get("scopeSpans", []):
                for span in scope.get("spans", []):
                    yield {
                        str(one["key"]): _value(one.get("value", {})) for one in span.get("attributes", [])
                    }
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise WireError(f"not an OTLP trace request ({error!r})") from error


def _document(content_type: str, body: bytes) -> dict[str, Any]:
    if content_type == JSON:
        return json_object(body)
    if content_type != PROTOBUF:
        raise WireError(f"Content-Type {content_type!r}; send {JSON} or {PROTOBUF}")
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError:
        raise WireError(
            "opentelemetry-proto is not installed beside the exporter; install the extra "
            "'inferwatch[drift]', or set the sender's encoding to json"
        ) from None
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError as error:
        raise WireError(f"not an OTLP trace request ({error})") from error
    found: dict[str, Any] = MessageToDict(request)
    return found


def _value(value: Mapping[str, Any]) -> Any:
    """An OTLP AnyValue as JSON writes it: 64-bit integers are strings, arrays are nested."""
    if "arrayValue" in value:
        return [_value(one) for one in value["arrayValue"].get("values", [])]
    if "intValue" in value:
        return int(value["intValue"])
    for kind in ("stringValue", "doubleValue", "boolValue", "bytesValue"):
        if kind in value:
            return float(value[kind]) if kind == "doubleValue" else value[kind]
    return None


def _vectors(attributes: Mapping[str, Any]) -> object:
    """Raw vectors of a span, None when it carries none; unreadable ones are passed on as malformed."""
    text = attributes.get(VECTORS)
    if text is not None:
        dimension = attributes.get(DIMENSION)
        try:
            numbers = np.frombuffer(base64.b64decode(str(text), validate=True), dtype="<f4")
            return numbers.reshape(-1, int(dimension) if dimension else numbers.size)
        except (binascii.Error, ValueError, TypeError, OverflowError):
            return ["unreadable"]
    found = [value for key, value in sorted(attributes.items()) if _OPENINFERENCE.match(key)]
    return found or None
