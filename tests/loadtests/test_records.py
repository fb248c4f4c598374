"""Records: derived times, files that survive a torn write, Parquet and back, percentiles by hand."""

import dataclasses
from pathlib import Path

import pytest

from loadtests.records import (
    RecordError,
    RequestRecord,
    percentile,
    percentile_with_cut,
    read_jsonl,
    read_parquet,
    to_line,
    write_parquet,
)

RECORD = RequestRecord(
    worker=0,
    seq=1,
    attempt=0,
    endpoint="chat",
    stream=True,
    tenant="a",
    lane=None,
    trace_id="f" * 32,
    scheduled_s=10.0,
    started_s=10.5,
    connected_s=10.75,
    sent_s=11.0,
    first_byte_s=11.25,
    first_token_s=11.5,
    first_content_s=None,
    last_token_s=13.5,
    end_s=14.0,
    wall_offset_s=1e9,
    clock="kernel",
    outcome="ok",
    status=200,
    finish_reason="stop",
    done_seen=True,
    error_kind=None,
    error_type=None,
    error_message=None,
    will_retry=False,
    prompt_tokens=3,
    output_tokens=5,
    cached_tokens=None,
    tokens_source="server",
    asked_prompt_tokens=3,
    asked_output_tokens=5,
    chunks=3,
    bytes_in=99,
    chunk_gaps_ns=(1_500_000_000, 500_000_000),
)


def test_derived_times() -> None:
    """Each by subtraction: TTFT 11.5-11, total 14-11, from schedule 14-10, TPOT 2/(5-1), connect, delay 11-10 less connect."""
    derived = (
        RECORD.ttft_s,
        RECORD.e2e_s,
        RECORD.latency_from_schedule_s,
        RECORD.tpot_s,
        RECORD.connect_s,
        RECORD.schedule_delay_s,
    )

    assert derived == (0.5, 3.0, 4.0, 0.5, 0.25, 0.75)


@pytest.mark.parametrize(
    "change",
    [
        {"output_tokens": 1},
        {"chunks": 1},
        {"tokens_source": "estimated"},
        {"last_token_s": RECORD.first_token_s},
    ],
)
def test_tpot_is_absent_where_it_means_nothing(change: dict[str, object]) -> None:
    """One token, one chunk, a count that the server did not give, all chunks in one read: no TPOT, not 0."""
    assert dataclasses.replace(RECORD, **change).tpot_s is None  # type: ignore[arg-type] # parametrised fields


def test_only_whole_answers_have_a_latency() -> None:
    """An error, an abort or a cut request has no total time; a request never sent has no TTFT."""
    for outcome in ("error", "aborted", "unfinished"):
        cut = dataclasses.replace(RECORD, outcome=outcome)
        assert (cut.e2e_s, cut.latency_from_schedule_s) == (None, None)
    assert dataclasses.replace(RECORD, sent_s=None).ttft_s is None


def test_a60_headers_are_not_latency() -> None:
    """A60: headers at 12 ms, first token 640, last 4640, closed 4650, 101 tokens: 640 / 40 / 4650 ms."""
    record = dataclasses.replace(
        RECORD,
        sent_s=0.0,
        first_byte_s=0.012,
        first_token_s=0.640,
        last_token_s=4.640,
        end_s=4.650,
        output_tokens=101,
        chunks=101,
    )

    assert (0.640, pytest.approx(0.040), 4.650) == (record.ttft_s, record.tpot_s, record.e2e_s)


def test_jsonl_round_trip_without_the_torn_last_line(tmp_path: Path) -> None:
    """What a killed client left is read up to its last complete line."""
    path = tmp_path / "records-0.jsonl"
    other = dataclasses.replace(RECORD, seq=2, error_message='quote " and\nbreak', chunk_gaps_ns=())
    path.write_text(to_line(RECORD) + to_line(other) + to_line(RECORD)[:50], encoding="utf-8")

    assert [RECORD, other] == list(read_jsonl(path))


def test_a_bad_line_in_the_middle_is_an_error(tmp_path: Path) -> None:
    """A file that is not what it should be names file and line."""
    path = tmp_path / "records-0.jsonl"
    path.write_text(to_line(RECORD) + '{"worker": 1}\n' + to_line(RECORD), encoding="utf-8")

    with pytest.raises(RecordError, match=r"records-0\.jsonl:2: not a request record"):
        list(read_jsonl(path))


def test_parquet_round_trip(tmp_path: Path) -> None:
    """Every field survives, None stays None, over more than one batch."""
    records = [dataclasses.replace(RECORD, seq=seq) for seq in range(5)]
    path = tmp_path / "records.parquet"

    assert write_parquet(iter(records), path, batch=2) == 5
    assert records == list(read_parquet(path))


def test_a_foreign_parquet_file_is_refused(tmp_path: Path) -> None:
    """A file with other columns names the first that is missing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1]}), path)

    with pytest.raises(RecordError, match="no column"):
        list(read_parquet(path))


def test_percentile_is_nearest_rank() -> None:
    """Of 1..10: P50 is the 5th, P95 the 10th, P10 the 1st; of 1..1000 P99.9 is the 999th."""
    ten, thousand = list(range(1, 11)), list(range(1, 1001))

    assert [percentile(ten, p) for p in (50, 95, 10, 100)] == [5, 10, 1, 10]
    assert percentile(thousand, 99.9) == 999


def test_percentile_with_cut_samples_by_hand() -> None:
    """Done after 1, 2, 4 s, cut at 3 s: survival 3/4 at 1, 1/2 at 2, then one is at risk: 0 at 4."""
    done, cut = [1.0, 2.0, 4.0], [3.0]

    assert [percentile_with_cut(done, cut, p) for p in (25, 50, 75, 100)] == [1.0, 2.0, 4.0, 4.0]
    assert percentile_with_cut(done, [9.0], 75) == 4.0
    assert percentile_with_cut(done, [9.0], 90) is None
    assert [percentile_with_cut(done, [0.5], p) for p in (33, 66, 99)] == [1.0, 2.0, 4.0]
    assert percentile_with_cut(done, [], 50) == percentile(done, 50)


@pytest.mark.parametrize(("samples", "percent"), [([], 50), ([1.0], 0), ([1.0], 101)])
def test_percentile_refuses_nonsense(samples: list[float], percent: float) -> None:
    """Nothing has no percentile, and 0 or 101 percent is none."""
    with pytest.raises(ValueError, match=r"no samples|not in"):
        percentile(samples, percent)
