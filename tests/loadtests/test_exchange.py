"""What a request came to, as a record that every file can hold."""

from pathlib import Path

from loadtests.exchange import Exchange
from loadtests.records import read_jsonl, read_parquet, to_line, write_parquet
from loadtests.workload import Prepared

REQUEST = Prepared(0, "chat", "/", b"", True, None, None, "f" * 32, False, None, None, None)


def _event(payload: str) -> bytes:
    return f"data: {payload}\n\n".encode()


def test_halves_of_a_character_reach_both_files(tmp_path: Path) -> None:
    """JSON's \\ud83d and \\ude42 in two chunks are one U+1F642; a half alone, in text or error, is U+FFFD."""
    exchange = Exchange(REQUEST, 0, 0, 0, 0, keep_text=True)
    for text in ("\\ud83d", "\\ude42", "a\\udc00"):
        exchange.meter.feed(_event(f'{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}'), 1)
    exchange.meter.feed(_event('{"error":{"type":"T\\ud800","message":"m\\ud800"}}'), 2)
    record = exchange.record(0, 3)
    lines = tmp_path / "records-0.jsonl"
    lines.write_text(to_line(record), encoding="utf-8")
    write_parquet(read_jsonl(lines), tmp_path / "records.parquet")

    assert record.text == "\U0001f642a\ufffd"
    assert (record.error_type, record.error_message) == ("T\ufffd", "m\ufffd")
    assert list(read_parquet(tmp_path / "records.parquet")) == [record]
