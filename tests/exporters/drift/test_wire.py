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


SHAPED = b"{'descr':'<f4','fortran_order':False,'shape':(%d,%d)}\n"


def npy_of(header: bytes) -> bytes:
    """A file of version 1.0 with this header and four numbers."""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(16)


def arrow(column: str = "vector") -> bytes:
    """VECTORS as an Arrow IPC stream."""
    return stream(pa.array(VECTORS, pa.list_(pa.float32(), 2)), column=column)


def stream(values: pa.Array, compression: str | None = None, column: str = "vector") -> bytes:
    """An Arrow IPC stream of one column."""
    table = pa.table({column: values})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
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
        (wire.NPY, npy_of(b"{'descr':'<f4'" * 9), "not an npy array"),
        (wire.NPY, npy_of(b"{[]: 1}\n"), "not an npy array"),
        (wire.NPY, npy_of(b"{1: 1, 'a': 2}\n"), "not an npy array"),
        (wire.NPY, npy_of(SHAPED % (10**25, 4)), "not an npy array"),
        (wire.NPY, npy_of(SHAPED % (9 * 10**15, 0)), "not a 2-dimensional"),
        (wire.NPY, b"PK\x03\x04junk", "not an npy array"),
        (wire.ARROW, arrow("v"), "no column 'vector'"),
        (wire.ARROW, stream(pa.array(["a"])), "holds string; send lists of floats"),
        (wire.ARROW, stream(pa.array([[]], pa.list_(pa.float32(), 0))), "send lists of floats"),
        (wire.ARROW, stream(pa.array(VECTORS * 4096), "zstd"), "its batches are compressed"),
        (wire.ARROW, stream(pa.array(VECTORS * 4096), "lz4"), "its batches are compressed"),
        (wire.ARROW, stream(pa.DictionaryArray.from_arrays([0, 0], pa.array(VECTORS))), "have dictionaries"),
        ("text/plain", b"", "Content-Type 'text/plain'"),
    ],
)
def test_unreadable_bodies_are_errors(kind: str, body: bytes, says: str) -> None:
    """Each says what is wrong."""
    with pytest.raises(wire.WireError, match=says):
        wire.batch(kind, body, {"model": "m"})


def test_a_damaged_arrow_stream_is_an_error_and_never_the_end_of_the_process() -> None:
    """Every byte turned over in turn: unchecked offsets of such streams end the process with a signal."""
    body = stream(pa.array(VECTORS, pa.list_(pa.float32())))
    refused = 0
    for at in range(len(body)):
        damaged = body[:at] + bytes([body[at] ^ 0xFF]) + body[at + 1 :]
        try:
            wire.batch(wire.ARROW, damaged, {"model": "m"})
        except wire.WireError:
            refused += 1

    assert refused > len(body) / 10


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


@pytest.mark.parametrize(
    ("attribute", "says"),
    [
        ({"key": "a", "value": {"intValue": "abc"}}, "not an OTLP trace request"),
        ({"key": "a", "value": {"doubleValue": "q"}}, "not an OTLP trace request"),
        ({"key": "a", "value": None}, "not an OTLP trace request"),
    ],
)
def test_broken_spans_are_errors(attribute: dict[str, object], says: str) -> None:
    """Numbers that are none, and values that are missing."""
    with pytest.raises(wire.WireError, match=says):
        otlp.batches(wire.JSON, json.dumps(request([attribute])).encode())


def test_an_endless_dimension_makes_vectors_malformed() -> None:
    """Infinity is no dimension, and a key that is a number is no reason to fail."""
    endless = {"key": "gen_ai.embeddings.dimension.count", "value": {"doubleValue": "Infinity"}}
    odd = {"key": 5, "value": {"stringValue": "x"}}
    body = json.dumps(request([*OURS[:3], endless, odd])).encode()
    (batch,) = otlp.batches(wire.JSON, body)

    assert dict(check(batch.vectors).rejected) == {"malformed": 1}


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
