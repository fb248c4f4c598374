"""HTTP/1.1 responses, cut anywhere, and peers that break the rules."""

import pytest

from loadtests.http1 import HttpError, ResponseDecoder

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def _decode(data: bytes, size: int) -> tuple[ResponseDecoder, bytes]:
    decoder = ResponseDecoder()
    body = b"".join(decoder.feed(data[i : i + size]) for i in range(0, len(data), size))
    return decoder, body


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_chunked_body(size: int) -> None:
    """Chunks with extensions and a trailer give their bytes, at any cut, and the connection lives on."""
    data = CHUNKED + b"5;a=b\r\nhello\r\n0006\r\n world\r\n0\r\nX-T: 1\r\n\r\n"

    decoder, body = _decode(data, size)

    assert (body, decoder.done, decoder.keep_alive, decoder.status) == (b"hello world", True, True, 200)


@pytest.mark.parametrize("size", [1, 1000])
def test_content_length_and_interim_response(size: int) -> None:
    """A 100 Continue is skipped; content-length ends the body."""
    data = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"

    decoder, body = _decode(data, size)

    assert (body, decoder.done, decoder.status, decoder.keep_alive) == (b"busy", True, 503, True)


def test_body_until_close() -> None:
    """Without a length the body ends when the peer closes, and the connection with it."""
    decoder, body = _decode(b"HTTP/1.0 200 OK\r\n\r\nabc", 4)

    assert (body, decoder.done) == (b"abc", False)
    assert decoder.close()
    assert not decoder.keep_alive


def test_close_before_the_end_is_told() -> None:
    """A peer that closes within a chunked body did not finish it."""
    decoder, body = _decode(CHUNKED + b"5\r\nabc", 1000)

    assert body == b"abc"
    assert not decoder.close()


def test_connection_close_and_unasked_bytes_end_reuse() -> None:
    """`Connection: close`, or bytes after the end, mean that the connection is not used again."""
    closing, _ = _decode(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", 1000)
    extra, body = _decode(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", 1000)
    after_chunks, _ = _decode(CHUNKED + b"0\r\n\r\nX", 1000)

    assert [closing.keep_alive, extra.keep_alive, after_chunks.keep_alive] == [False] * 3
    assert body == b"a"


def test_headers_are_lower_case_and_repeated_ones_joined() -> None:
    """Header names are case-insensitive; two of a name are one list."""
    decoder, _ = _decode(b"HTTP/1.1 204 No Content\r\nSet-A: 1\r\nset-a: 2\r\n\r\n", 1000)

    assert decoder.headers == {"set-a": "1, 2"}
    assert decoder.done


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        CHUNKED + b"xyz\r\n",
        CHUNKED + b"2\r\nabcd\r\n",
        CHUNKED + b"0x2\r\nab!!\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000,
    ],
)
def test_broken_responses_are_errors(data: bytes) -> None:
    """Bytes that are not a response we can trust raise, they are never guessed at."""
    with pytest.raises(HttpError):
        ResponseDecoder().feed(data)


def test_a_length_of_thousands_of_digits_is_a_protocol_error() -> None:
    """Python refuses to read such a number with an error of its own, which would end the run and not the request."""
    with pytest.raises(HttpError, match="bad content-length"):
        ResponseDecoder().feed(b"HTTP/1.1 200 OK\r\ncontent-length: " + b"1" * 5000 + b"\r\n\r\n")
