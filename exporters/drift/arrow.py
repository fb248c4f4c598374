"""An Arrow IPC stream from anyone -> the rows of its column `vector`, or an ArrowError that says what to send.

Arrow trusts the lengths and offsets of a stream: a wrong one ends the process, and a compressed kilobyte can be
gigabytes. So batches are looked at before they are read, and checked in full before a value is taken.
"""

import struct
from typing import Any

VECTOR_COLUMN = "vector"
_COMPRESSION, _HEADER = 3, 2  # fields of RecordBatch and Message in Arrow's Message.fbs


class ArrowError(ValueError):
    """A stream that cannot be used; the text says what was wrong and what to send."""


def rows(body: bytes) -> list[Any]:
    """One list of floats a row, None for a null. Raises ArrowError, ImportError where pyarrow is not installed."""
    import pyarrow as pa

    try:
        _refuse_bombs(pa, body)
        with pa.ipc.open_stream(body) as reader:
            table = reader.read_all()
        table.validate(full=True)
        if VECTOR_COLUMN not in table.column_names:
            raise ArrowError(f"no column {VECTOR_COLUMN!r}; it has {table.column_names}")
        column = table.column(VECTOR_COLUMN)
        if not _of_numbers(pa, column.type) or table.num_rows > len(body):
            raise ArrowError(f"column {VECTOR_COLUMN!r} holds {column.type}; send lists of floats")
        found: list[Any] = column.to_pylist()
    except ArrowError:
        raise
    except Exception as error:  # pyarrow raises a dozen kinds for bytes that are no stream
        raise ArrowError(f"not an Arrow IPC stream ({error})") from error
    return found


def _of_numbers(pa: Any, kind: Any) -> bool:
    """Whether a column holds lists of numbers, each with values of its own."""
    types = pa.types
    if types.is_fixed_size_list(kind):
        if kind.list_size < 1:
            return False
    elif not (types.is_list(kind) or types.is_large_list(kind)):
        return False
    return bool(types.is_floating(kind.value_type) or types.is_integer(kind.value_type))


def _refuse_bombs(pa: Any, body: bytes) -> None:
    """Compressed batches and dictionaries can be thousands of times what was sent."""
    for message in pa.ipc.MessageReader.open_stream(body):
        if message.type == "dictionary":
            raise ArrowError("its columns have dictionaries; send plain lists of floats")
        if message.type == "record batch" and _compressed(message.metadata.to_pybytes()):
            raise ArrowError("its batches are compressed; send them plain, or the body with Content-Encoding")


def _compressed(message: bytes) -> bool:
    """Whether a record batch's message (a flatbuffer, already verified) names a compression."""
    (root,) = struct.unpack_from("<I", message)
    header = _field(message, root, _HEADER)
    if header is None:
        return False
    (to_batch,) = struct.unpack_from("<I", message, header)
    return _field(message, header + to_batch, _COMPRESSION) is not None


def _field(message: bytes, table: int, number: int) -> int | None:
    """Where a field of a flatbuffer's table stands; None when it is left out."""
    (back,) = struct.unpack_from("<i", message, table)
    (size,) = struct.unpack_from("<H", message, table - back)
    slot = 4 + 2 * number
    if slot >= size:
        return None
    (offset,) = struct.unpack_from("<H", message, table - back + slot)
    return table + int(offset) if offset else None
