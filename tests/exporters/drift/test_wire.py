"""Bodies of every kind carry the same vectors; what cannot be read says what to send."""

import base64
import io
import json

import numpy as np
import pyarrow as pa
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from exporters.drift import otlp, wire
from exporters.drift.vectors import check

VECTORS = [[1.0, 2.0], [3.0, 4.0]]


def npy() -> bytes:
    """VECTORS as np.save writes them."""
    text = io.BytesIO()
    np.save(text, np.array(VECTORS))
    return text.getvalue()


def arrow(column: str = "vector") -> bytes:
    """VECTORS as an Arrow IPC stream."""
    table = pa.table({column: pa.array(VECTORS, pa.list_(pa.float32(), 2))})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (wire.JSON, json.dumps({"model": "m", "version": "2", "tenant": "t", "vectors": VECTORS}).encode()),
        (wire.NPY, npy()),
        (wire.ARROW, arrow()),
    ],
)
def test_json_npy_and_arrow_say_the_same(kind: str, body: bytes) -> None:
    """Names come from the body or the query; the vectors are equal."""
    query = {"model": "m", "version": "2", "tenant": "t"}
    batch = wire.batch(kind, body, query)

    assert (batch.model, batch.version, batch.tenant) == ("m", "2", "t")
    assert check(batch.vectors).vectors.tolist() == VECTORS


@pytest.mark.parametrize(
    ("kind", "body", "says"),
    [
        (wire.JSON, b"{", "not JSON"),
        (wire.JSON, b"[1]", "not a JSON object"),
        (wire.JSON, b'{"model": "m"}', "no list `vectors`"),
        (wire.JSON, b'{"vectors": []}', "the model's name"),
        (wire.JSON, b'{"model": "m", "version": 2, "vectors": []}', "version is 2"),
        (wire.NPY, b"\x93NUMPY", "not an npy array"),
        (wire.NPY, npy()[:-4], "not an npy array"),
        (wire.ARROW, b"arrow", "not an Arrow IPC stream"),
        (wire.ARROW, arrow("v"), "no column 'vector'"),
        ("text/plain", b"", "Content-Type 'text/plain'"),
    ],
)
def test_unreadable_bodies_are_errors(kind: str, body: bytes, says: str) -> None:
    """Each says what is wrong."""
    with pytest.raises(wire.WireError, match=says):
        wire.batch(kind, body, {"model": "m"})


def test_a_pickled_array_is_never_loaded() -> None:
    """npy with objects would run code when read."""
    text = io.BytesIO()
    np.save(text, np.array([[object()]]), allow_pickle=True)

    with pytest.raises(wire.WireError, match="not an npy array"):
        wire.batch(wire.NPY, text.getvalue(), {"model": "m"})


def test_embedding_answers_in_floats_and_base64() -> None:
    """Both encodings of the API, and an entry that is neither."""
    packed = base64.b64encode(np.array([3.0, 4.0], "<f4").tobytes()).decode()
    body = {"model": "m", "data": [{"embedding": [1.0, 2.0]}, {"embedding": packed}, {"embedding": "!"}]}
    model, vectors = wire.embeddings(json.dumps(body).encode())
    checked = check(vectors)

    assert model == "m"
    assert checked.vectors.tolist() == VECTORS
    assert dict(checked.rejected) == {"malformed": 1}


def request(attributes: list[dict[str, object]]) -> dict[str, object]:
    """An OTLP trace request with one span."""
    span = {
        "traceId": "0" * 31 + "1",
        "spanId": "0" * 15 + "1",
        "name": "embeddings",
        "attributes": attributes,
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span, {"name": "other", "attributes": []}]}]}]}


def text(key: str, value: str) -> dict[str, object]:
    """A string attribute."""
    return {"key": key, "value": {"stringValue": value}}


OURS = [
    text("gen_ai.request.model", "m"),
    text("inferwatch.embedding.version", "2"),
    text("inferwatch.embedding.vectors", base64.b64encode(np.array(VECTORS, "<f4").tobytes()).decode()),
    {"key": "gen_ai.embeddings.dimension.count", "value": {"intValue": "2"}},
]
OPENINFERENCE = [
    text("embedding.model_name", "m"),
    *(
        {
            "key": f"embedding.embeddings.{at}.embedding.vector",
            "value": {"arrayValue": {"values": [{"doubleValue": number} for number in vector]}},
        }
        for at, vector in enumerate(VECTORS)
    ),
]


@pytest.mark.parametrize("attributes", [OURS, OPENINFERENCE])
def test_spans_carry_vectors_as_json_and_as_protobuf(attributes: list[dict[str, object]]) -> None:
    """Ours and OpenInference's attributes, in both encodings; spans without vectors are passed over."""
    from google.protobuf.json_format import ParseDict

    document = request(attributes)
    encoded = ParseDict(document, ExportTraceServiceRequest()).SerializeToString()
    for kind, body in ((otlp.JSON, json.dumps(document).encode()), (otlp.PROTOBUF, encoded)):
        (batch,) = otlp.batches(kind, body)
        assert batch.model == "m"
        assert check(batch.vectors).vectors.tolist() == VECTORS


def test_vectors_that_do_not_fit_their_dimension_are_malformed() -> None:
    """Four numbers and a dimension of 3."""
    wrong = [*OURS[:-1], {"key": "gen_ai.embeddings.dimension.count", "value": {"intValue": "3"}}]
    (batch,) = otlp.batches(otlp.JSON, json.dumps(request(wrong)).encode())

    assert dict(check(batch.vectors).rejected) == {"malformed": 1}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (otlp.JSON, b"{"),
        (otlp.JSON, b"[]"),
        (otlp.JSON, b'{"resourceSpans": [1]}'),
        (otlp.PROTOBUF, b"\xff\xff"),
        ("text/plain", b""),
    ],
)
def test_what_is_no_trace_request_is_an_error(kind: str, body: bytes) -> None:
    """None of them ends the exporter."""
    with pytest.raises(wire.WireError):
        otlp.batches(kind, body)
