"""XID events: classes start at 0, an event is counted once, and counts outlive the GPU."""

import json
from typing import Any

from slo.xids import CLASSES, class_of


def test_codes_have_one_class_each() -> None:
    """The lists do not overlap; what none lists is other."""
    codes = [code for listed in CLASSES.values() for code in listed]

    assert len(codes) == len(set(codes))
    assert (class_of(79), class_of(48), class_of(13), class_of(74), class_of(119), class_of(9999)) == (
        "lost",
        "memory",
        "application",
        "link",
        "firmware",
        "other",
    )


def test_events_are_counted_by_class_and_code(drive: Any, phase: Any) -> None:
    """Two 31s and a 79; classes without events stand at 0, so that increase() sees a first event."""
    machine = json.loads(json.dumps(phase("idle")))
    machine["devices"][0]["xids"] = [[0, 31], [-1, 31], [0, 79]]
    shown = drive(machine)
    before = shown.scrape()
    for _ in range(3):
        shown.agent.gpu.event_round(shown.now)
    after = shown.scrape()

    assert before.one("llm_gpu_xid_total", **{"class": "lost"}) == 0
    assert before.all("llm_gpu_xid_code_total") == []
    assert after.one("llm_gpu_xid_total", **{"class": "application"}) == 2
    assert after.one("llm_gpu_xid_total", **{"class": "lost"}) == 1
    assert after.one("llm_gpu_xid_total", **{"class": "memory"}) == 0
    assert after.one("llm_gpu_xid_code_total", xid="79") == 1
    assert after.one("llm_gpu_xid_watched") == 1
    assert len(after.all("llm_gpu_xid_total")) == len(CLASSES)
