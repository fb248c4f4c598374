"""min, mean, max, last since a scraper's own last scrape."""

from typing import Any

import pytest

from exporters.node.recorded import RecordedNvml
from exporters.node.windows import Scrapers, Window


def test_a_window_holds_what_came_after_since() -> None:
    """The reading at `since` was seen by the scrape before."""
    window = Window(seconds=60)
    for at, value in ((1, 5.0), (2, 1.0), (3, 9.0), (4, 2.0)):
        window.add(at, value)

    stats = window.stats(since=1)

    assert stats is not None
    assert dict(stats.items()) == {"min": 1.0, "mean": 4.0, "max": 9.0, "last": 2.0}
    assert window.stats(since=4) is None


def test_a_window_forgets_what_is_too_old() -> None:
    """Readings of twice its length ago are gone; those within it stay."""
    window = Window(seconds=60)
    for at in (0.0, 61.0, 100.0, 121.0):
        window.add(at, at)

    assert window.values(since=-1) == [100.0, 121.0]
    assert window.fresh(now=181)
    assert not window.fresh(now=182)


def test_scrapers_do_not_take_each_others_windows() -> None:
    """Two Prometheis and a person with curl: each sees what is new to it, at most a minute back."""
    scrapers = Scrapers(longest_seconds=60)
    assert scrapers.since("a", 100) == 40
    assert scrapers.since("b", 105) == 45
    assert scrapers.since("a", 115) == 100
    assert scrapers.since("b", 120) == 105
    assert scrapers.since("a", 300) == 240


def test_a_spike_of_200_ms_is_seen_at_a_15_s_scrape(drive: Any, phase: Any) -> None:
    """Two of 150 readings show 100 % utilisation: the maximum tells, the mean is 2/150."""
    at = [0]

    class Spiking(RecordedNvml):
        def call(self, name: str, *args: Any) -> Any:
            if name == "nvmlDeviceGetUtilizationRates":
                at[0] += 1
                return {"gpu": 100 if at[0] in (71, 72) else 0, "memory": 0}
            return super().call(name, *args)

    shown = drive(Spiking(phase("idle"), clock=lambda: 0.0))
    shown.scrape()
    shown.run(seconds=15)
    scrape = shown.scrape()

    assert scrape.one("llm_gpu_utilisation_ratio", stat="max") == 1
    assert scrape.one("llm_gpu_utilisation_ratio", stat="last") == 0
    assert scrape.one("llm_gpu_utilisation_ratio", stat="mean") == pytest.approx(2 / 150)
    assert shown.scrape().all("llm_gpu_utilisation_ratio") == []


def test_scrapers_of_any_name_are_remembered_up_to_a_number() -> None:
    """A thousand names within one window: the last 64 are kept, and who comes regularly is one of them."""
    scrapers = Scrapers(60.0)
    scrapers.since("prometheus", 0.0)
    for at in range(1000):
        scrapers.since(f"curl/{at}", 1.0 + at / 1000)
        if at % 50 == 0:
            scrapers.since("prometheus", 1.0 + at / 1000)

    assert len(scrapers._last) == 64
    assert scrapers.since("prometheus", 3.0) == 1.95
    assert scrapers.since("curl/1", 3.0) == -57.0
