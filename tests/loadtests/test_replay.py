"""Public trace formats, in small invented files of their shape."""

from pathlib import Path

import pytest

from loadtests.replay import Format, TraceError, read_trace

AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:15:46.6805900,374,44\n"
    "2023-11-16 18:15:50.9951690,396,109\n"
    "2023-11-16 18:16:46.6805900,879,55\n"
)
BURSTGPT = (
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "5,ChatGPT,472,18,490,Conversation log\n"
    "45,ChatGPT,1087,0,1087,Conversation log\n"
    "118,GPT-4,417,276,693,API log\n"
)
MOONCAKE = (
    '{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}\n'
    '{"timestamp": 3000, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14]}\n'
)


def _write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trace"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("azure", AZURE, [(0, 374, 44, ()), (4.314579, 396, 109, ()), (60, 879, 55, ())]),
        ("burstgpt", BURSTGPT, [(0, 472, 18, ()), (113, 417, 276, ())]),
        ("mooncake", MOONCAKE, [(0, 6758, 500, (0, 1, 2)), (3, 7322, 490, (0, 14))]),
    ],
)
def test_formats(tmp_path: Path, kind: Format, text: str, expected: list[tuple[object, ...]]) -> None:
    """Times count from the first row, lengths are kept; BurstGPT's failed request (0 tokens) is left out."""
    rows = [tuple(due) for due in read_trace(_write(tmp_path, text), kind)]

    assert [row[1:] for row in rows] == [row[1:] for row in expected]
    assert [row[0] for row in rows] == pytest.approx([row[0] for row in expected], abs=1e-6)


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    """A packed or UTF-16 file is named, not a traceback."""
    path = tmp_path / "trace"
    path.write_bytes(AZURE.encode("utf-16"))

    with pytest.raises(TraceError, match="write it as UTF-8"):
        list(read_trace(path, "azure"))


def test_azure_times_with_an_offset(tmp_path: Path) -> None:
    """02:00:02.5 two hours east of Greenwich is 2.5 s after midnight there; without an offset it is UTC."""
    head, stamps = (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n",
        (
            "2024-05-10 00:00:00.0000000+00:00",
            "2024-05-10 02:00:02.5+02:00",
            "2024-05-10T00:00:03Z",
            "2024-05-10 00:00:04",
        ),
    )
    rows = read_trace(_write(tmp_path, head + "".join(f"{stamp},1,1\n" for stamp in stamps)), "azure")

    assert [due.at_s for due in rows] == [0.0, 2.5, 3.0, 4.0]


def test_speed(tmp_path: Path) -> None:
    """Replayed ten times as fast, a minute is six seconds."""
    rows = list(read_trace(_write(tmp_path, AZURE), "azure", speed=10))

    assert rows[-1].at_s == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("azure", BURSTGPT, ":2: KeyError.*needs TIMESTAMP"),
        ("azure", AZURE.replace("374", "many"), ":2: ValueError"),
        ("burstgpt", BURSTGPT.replace("118", "1"), ":4: 1.0: earlier than the row before"),
        ("mooncake", "{\n", ":1: not JSON"),
        ("mooncake", "", "holds no request"),
        ("mooncake", "[1, 2]\n", ":1: .*needs timestamp"),
        ("mooncake", MOONCAKE.replace("3000", "NaN"), ":2: ValueError.*finite"),
        ("mooncake", MOONCAKE.replace("7322", "-1"), ":2: ValueError.*counts from 0"),
        ("mooncake", MOONCAKE.replace("7322", "9" * 20), ":2: ValueError.*counts from 0 to 10000000"),
        ("mooncake", MOONCAKE.replace("7322", "1e999"), ":2: OverflowError"),
        ("mooncake", MOONCAKE.replace("3000", "9" * 400), ":2: OverflowError"),
        ("burstgpt", BURSTGPT.replace("118", "inf"), ":4: ValueError.*finite"),
        ("burstgpt", BURSTGPT.replace("693,API log", '"' + "x" * 200_000 + '"'), "not a text file of rows"),
    ],
)
def test_what_is_not_a_trace_is_refused(tmp_path: Path, kind: Format, text: str, said: str) -> None:
    """The error names file, line, value and what was wanted."""
    with pytest.raises(TraceError, match=said):
        list(read_trace(_write(tmp_path, text), kind))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """No file, no traceback: an error with its path."""
    with pytest.raises(TraceError, match="none: cannot be read"):
        list(read_trace(tmp_path / "none", "azure"))
