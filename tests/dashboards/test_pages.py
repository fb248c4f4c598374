"""Numbers on the pages are those of slo.yaml, worked out by hand here."""

from pathlib import Path
from typing import Any

import yaml

from dashboards.registry import build_all
from slo.spec import DEFAULT_PATH, Spec, load, parse


def panel(spec: Spec, uid: str, title: str) -> dict[str, Any]:
    """One panel by its title."""
    (found,) = [p for p in build_all(spec)[uid]["panels"] if p["title"] == title and p["type"] != "row"]
    return found


def limits(one: dict[str, Any]) -> list[float]:
    """Threshold values above the first."""
    return [step["value"] for step in one["fieldConfig"]["defaults"]["thresholds"]["steps"][1:]]


def changed(**keys: Any) -> Spec:
    """The shipped spec with some parts replaced."""
    raw = yaml.safe_load(Path(DEFAULT_PATH).read_text(encoding="utf-8"))
    raw.update(keys)
    return parse(raw)


def test_burn_lines_are_where_tickets_and_pages_begin() -> None:
    """10 % in 3 d of 30 d burns at 1; 5 % in 6 h of 30 d burns at 0.05 × 720 h / 6 h = 6."""
    one = panel(load(), "inferwatch-slo", "Burn rate")
    assert [round(v, 9) for v in limits(one)] == [1, 6]


def test_latency_lines_are_the_promises() -> None:
    """2 s for the whole request, 0.5 s for the first token, 0.1 s a token, in seconds."""
    titles = {"Whole request": 2.0, "Time to first token": 0.5, "Time per output token": 0.1}
    for title, seconds in titles.items():
        one = panel(load(), "inferwatch-slo", title)
        assert limits(one) == [seconds]
        assert one["fieldConfig"]["defaults"]["unit"] == "s"


def test_a_changed_threshold_moves_its_line() -> None:
    """The waiting-requests signal at 9.5 instead of 4.7: everywhere it is drawn."""
    raw = yaml.safe_load(Path(DEFAULT_PATH).read_text(encoding="utf-8"))
    for signal in raw["signals"]:
        if signal["id"] == "waiting-requests":
            signal["threshold"] = 9.5
    spec = changed(signals=raw["signals"])
    assert limits(panel(spec, "inferwatch-engine", "Running and waiting requests")) == [9.5]
    assert limits(panel(spec, "inferwatch-engine", "Waiting requests")) == [9.5]
    assert limits(panel(spec, "inferwatch-batching", "Waiting requests")) == [9.5]


def test_a_ratio_is_drawn_as_a_ratio() -> None:
    """KV pressure 0.95 is 0.95 with percentunit, never 95."""
    one = panel(load(), "inferwatch-kv-cache", "KV cache in use by engine")
    assert limits(one) == [0.95]
    assert one["fieldConfig"]["defaults"]["unit"] == "percentunit"
    assert one["fieldConfig"]["defaults"]["max"] == 1


def test_the_grids_say_how_to_read_them() -> None:
    """Axes that are not time are explained in the panel, and more is to the right and up."""
    for uid, title in (
        ("inferwatch-batching", "Batch size × request rate"),
        ("inferwatch-kv-cache", "KV hit rate × sequence length"),
        ("inferwatch-kv-cache", "Context length × latency"),
    ):
        one = panel(load(), uid, title)
        assert "Read it as: a row is" in one["description"]
        assert [t["id"] for t in one["transformations"]] == [
            "convertFieldType", "sortBy", "sortBy", "groupingToMatrix",
        ]  # fmt: skip
        assert one["transformations"][2]["options"]["sort"][0]["desc"] is True


def test_a_cell_of_the_best_region_is_marked() -> None:
    """The share of such a cell is raised by 10; the panel turns 10 to 12 into a star."""
    one = panel(load(), "inferwatch-batching", "Batch size × request rate")
    (mark,) = [m for m in one["fieldConfig"]["defaults"]["mappings"] if m["type"] == "range"]
    assert (mark["options"]["from"], mark["options"]["to"]) == (10, 12)
    assert "★" in mark["options"]["result"]["text"]
    assert "+ 10 * (max by (x, y)" in one["targets"][0]["expr"]


def test_a_number_of_alerts_is_that_of_now() -> None:
    """A series of ALERTS ends when its alert does: over a range the last value would stay on the page for ever."""
    stats = [p for page in build_all(load()).values() for p in page["panels"] if p["type"] == "stat"]
    asked = [t for p in stats for t in p["targets"] if "ALERTS{" in t["expr"]]

    assert len(asked) >= 2
    assert all(target["instant"] or target["expr"].endswith("or vector(0)") for target in asked)


def test_an_engine_that_hangs_is_not_shown_as_up() -> None:
    """Its probe succeeds all the while; requests that stand still come first."""
    (target,) = panel(load(), "inferwatch-engine", "State of each engine")["targets"]
    first, second, *_ = target["expr"].split(" or ")

    assert second.startswith("max by (instance) (inferwatch:instance_down:bool{")
    assert first.startswith("max by (instance) ((inferwatch:instance_stuck_requests:sum{")
    assert first.endswith("> bool 0) * 3 > 0)")
