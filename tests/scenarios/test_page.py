"""A recorded page whose traffic goes on."""

import re

import pytest

from inferwatch.scenarios.page import Served
from inferwatch.scenarios.shown import Page

WHOLE = "vllm:e2e_request_latency_seconds"


def value(text: str, pattern: str) -> float:
    """The one sample whose line begins with the pattern."""
    (found,) = re.findall(rf"^{pattern} (\S+)$", text, re.MULTILINE)
    return float(found)


def bounds(text: str) -> list[str]:
    """Of whole requests' latency."""
    return re.findall(rf'^{WHOLE}_bucket\{{[^}}]*le="([^"]+)"', text, re.MULTILINE)


def test_counters_go_on_at_the_rate_and_gauges_stand() -> None:
    """138 were recorded; 4 a second for 69 s are twice as many again."""
    served = Served(4.0)
    assert value(served.text(), rf"{WHOLE}_count\{{.*\}}") == 138
    served.advance(69.0)
    assert value(served.text(), rf"{WHOLE}_count\{{.*\}}") == pytest.approx(138 + 276)
    assert value(served.text(), r"vllm:num_requests_running\{.*\}") == 2


def test_what_is_off_the_scale_is_in_no_bucket_but_the_last() -> None:
    """A quarter of 276 new requests; counters never fall when it is over."""
    served = Served(4.0)
    served.page = Page(off_scale=0.25)
    served.advance(69.0)
    highest = rf'{WHOLE}_bucket\{{.*le="7680.0".*\}}'
    assert value(served.text(), highest) == pytest.approx(138 + 207)
    assert value(served.text(), rf'{WHOLE}_bucket\{{.*le="\+Inf".*\}}') == pytest.approx(138 + 276)
    before = value(served.text(), highest)
    served.page = Page()
    assert value(served.text(), highest) == before


def test_other_bounds_leave_the_infinite_one() -> None:
    """Two bounds and all."""
    served = Served(4.0)
    assert len(bounds(served.text())) > 15
    served.page = Page(bounds=("1.0", "5.0"))
    assert bounds(served.text()) == ["1.0", "5.0", "+Inf"]
