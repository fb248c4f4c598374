"""Counts and quantiles of two probe texts against client records, worked out by hand."""

import pytest

from inferwatch.loop.compare import ClientTruth, Point, counts, nearest_rank, parse, quantile_pairs


def probe(finished: int, ttft: tuple[int, int, int], prompt: int, generated: int) -> str:
    """A probe text with TTFT buckets 0.1, 0.25 and +Inf holding these cumulative counts."""
    return "\n".join(
        [
            "# TYPE llm_requests_total counter",
            f'llm_requests_total{{model="m",dp_rank="0",finish_reason="stop"}} {finished - 1}',
            'llm_requests_total{model="m",dp_rank="0",finish_reason="length"} 1',
            "# TYPE llm_prompt_tokens_total counter",
            f'llm_prompt_tokens_total{{model="m",dp_rank="0"}} {prompt}',
            "# TYPE llm_generation_tokens_total counter",
            f'llm_generation_tokens_total{{model="m",dp_rank="0"}} {generated}',
            "# TYPE llm_time_to_first_token_seconds histogram",
            f'llm_time_to_first_token_seconds_bucket{{model="m",dp_rank="0",le="0.1"}} {ttft[0]}',
            f'llm_time_to_first_token_seconds_bucket{{model="m",dp_rank="0",le="0.25"}} {ttft[1]}',
            f'llm_time_to_first_token_seconds_bucket{{model="m",dp_rank="0",le="+Inf"}} {ttft[2]}',
            f'llm_time_to_first_token_seconds_count{{model="m",dp_rank="0"}} {ttft[2]}',
            'llm_time_to_first_token_seconds_sum{model="m",dp_rank="0"} 1.0',
            "",
        ]
    )


def canary(ok: int, timeout: int, prompt: int, generated: int) -> str:
    """The canary's own counters."""
    return "\n".join(
        [
            "# TYPE llm_canary_requests_total counter",
            f'llm_canary_requests_total{{result="ok",code="200"}} {ok}',
            f'llm_canary_requests_total{{result="timeout",code=""}} {timeout}',
            "# TYPE llm_canary_prompt_tokens_total counter",
            f"llm_canary_prompt_tokens_total {prompt}",
            "# TYPE llm_canary_generation_tokens_total counter",
            f"llm_canary_generation_tokens_total {generated}",
            "",
        ]
    )


BEFORE = parse(probe(10, (5, 8, 10), 1000, 100))
# Between the points: 4 requests, 3 of them under 0.1 s and 1 between 0.1 and 0.25 s.
AFTER = parse(probe(14, (8, 12, 14), 1400, 180))
TTFT = (0.05, 0.06, 0.09, 0.2)
QUIET = parse(canary(7, 0, 21, 7))
START, END = Point(BEFORE, QUIET), Point(AFTER, QUIET)


def test_equal_ledgers_match() -> None:
    """4 requests, 400 prompt and 80 generated tokens on both sides."""
    truth = ClientTruth(4, 400, 80, TTFT, (1.0,) * 4)

    assert [(c.client, c.server, c.matches) for c in counts(START, END, truth)] == [
        (4, 4, True),
        (4, 4, True),
        (400, 400, True),
        (80, 80, True),
    ]


def test_one_token_off_is_a_mismatch() -> None:
    """A single missing token is told; nothing is rounded away."""
    truth = ClientTruth(4, 400, 79, TTFT, (1.0,) * 4)

    assert [c.what for c in counts(START, END, truth) if not c.matches] == ["generation tokens"]


def test_the_canary_is_left_out() -> None:
    """One canary request of 3 prompt tokens and 1 generated: the clients' share is 3, 397 and 79."""
    end = Point(AFTER, parse(canary(8, 0, 24, 8)))

    assert all(c.matches for c in counts(START, end, ClientTruth(3, 397, 79, TTFT[:3], ())))


def test_a_canary_request_given_up_may_or_may_not_be_counted() -> None:
    """One ok (3 prompt tokens, 1 generated) and one timed out: the server may have up to one more of each."""
    end = Point(AFTER, parse(canary(8, 1, 24, 8)))

    fewest = counts(START, end, ClientTruth(3, 397, 79, TTFT[:3], ()))
    most = counts(START, end, ClientTruth(2, 394, 78, TTFT[:2], ()))
    beyond = counts(START, end, ClientTruth(1, 393, 77, TTFT[:1], ()))

    assert [c.slack for c in fewest] == [1, 1, 3, 1]
    assert all(c.matches for c in fewest)
    assert all(c.matches for c in most)
    assert not any(c.matches for c in beyond)


def test_a_restart_between_the_points_is_an_error() -> None:
    """A counter that fell cannot be compared."""
    with pytest.raises(ValueError, match="fell by 4: the engine restarted"):
        counts(END, START, ClientTruth(4, 400, 80, TTFT, ()))


def test_quantiles_in_the_same_bucket() -> None:
    """P50 of 4 is the 2nd (0.06, under 0.1); P95 and P99 the 4th (0.2, under 0.25)."""
    pairs = quantile_pairs("ttft", "llm_time_to_first_token_seconds", BEFORE, AFTER, TTFT)

    assert [(p.client_seconds, p.server_upper_bound_seconds, p.buckets_apart) for p in pairs] == [
        (0.06, 0.1, 0),
        (0.2, 0.25, 0),
        (0.2, 0.25, 0),
    ]


def test_client_one_bucket_later_is_within_and_two_is_not() -> None:
    """The client sees network and HTTP on top: one bucket later is allowed, two are not."""
    one_later = quantile_pairs("ttft", "llm_time_to_first_token_seconds", BEFORE, AFTER, (0.15,) * 4)
    two_later = quantile_pairs("ttft", "llm_time_to_first_token_seconds", BEFORE, AFTER, (0.3,) * 4)

    assert [p.buckets_apart for p in one_later] == [1, 0, 0]
    assert [p.within_one_bucket for p in two_later] == [False, True, True]


def test_no_growth_is_an_error() -> None:
    """A histogram that did not grow has no quantiles."""
    with pytest.raises(ValueError, match="did not grow"):
        quantile_pairs("ttft", "llm_time_to_first_token_seconds", BEFORE, BEFORE, TTFT)


def test_nearest_rank_is_a_sample() -> None:
    """P50 of 1..5 is 3, P99 is 5."""
    assert (nearest_rank([5, 1, 4, 2, 3], 0.5), nearest_rank([5, 1, 4, 2, 3], 0.99)) == (3, 5)
