"""Which queries have data, and whether the numbers can be what their unit says."""

from typing import Any

import pytest

from dashboards import coverage
from dashboards.registry import build_all
from inferwatch.promapi import PromError, Rule, RuleGroup, Series, Target
from inferwatch.render.variables import window
from slo.spec import load

VIEW = window(0, 100, 5)


class Served:
    """A Prometheus with one target, whose page and answers a test gives."""

    def __init__(self, answers: dict[str, list[Series]], selected: dict[str, list[str]]) -> None:
        self.answers, self.selected = answers, selected

    def targets(self) -> list[Target]:
        """One target; its page is given to `exported` by the test."""
        return [Target("j", "i", {}, "http://127.0.0.1:1/metrics", "up", "", None)]

    def rules(self) -> list[RuleGroup]:
        """One recording rule."""
        rule = Rule("recorded:x:rate", "recording", "rule_source", "ok", "")
        return [RuleGroup("g", "f", 5.0, (rule,))]

    def json(self, method: str, path: str, params: Any) -> Any:
        """The parser: what each expression selects."""
        assert (method, path) == ("GET", "/api/v1/parse_query")
        expr = params[0][1]
        if expr == "broken(":
            return {"status": "error", "error": "unexpected end"}
        names = self.selected.get(expr, [expr])
        return {
            "status": "success",
            "data": {"type": "call", "args": [{"type": "vectorSelector", "name": n} for n in names]},
        }

    def query_range(self, expr: str, **_: Any) -> list[Series]:
        """What the test gave."""
        return self.answers.get(expr, [])


def board(*targets: tuple[str, str], unit: str = "percentunit") -> dict[str, Any]:
    """One panel with (expression, legend) targets."""
    return {
        "uid": "d",
        "templating": {"list": []},
        "annotations": {"list": []},
        "panels": [
            {
                "id": 1,
                "type": "timeseries",
                "title": "P",
                "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
                "targets": [
                    {
                        "refId": "AB"[i],
                        "expr": e,
                        "legendFormat": legend,
                        "format": "time_series",
                        "instant": False,
                    }
                    for i, (e, legend) in enumerate(targets)
                ],
            }
        ],
    }


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The target's page has three names of ours."""
    names = {"llm_a_ratio", "llm_unused_total", "rule_source", "llm_h_bucket", "llm_h_sum"}
    monkeypatch.setattr(coverage, "exported", lambda targets: names)


def test_data_units_and_legends_are_judged(page: None) -> None:
    """0.5 is a ratio with its label; 97 is no ratio; nothing is no data; a label nobody has is a fault."""
    del page
    answers = {
        "llm_a_ratio": [Series({"model": "m"}, ((0, 0.5),))],
        "recorded:x:rate": [Series({"model": "m"}, ((0, 97.0),))],
    }
    good = coverage.examine([board(("llm_a_ratio", "{{model}}"))], Served(answers, {}), VIEW)
    assert (good.queries, good.with_data, good.faults) == (1, 1, [])
    high = coverage.examine([board(("recorded:x:rate", "{{model}}"))], Served(answers, {}), VIEW)
    assert high.faults == ["d: P (A): values 97 to 97 are no percentunit"]
    label = coverage.examine([board(("llm_a_ratio", "{{pod}}"))], Served(answers, {}), VIEW)
    assert label.faults == ["d: P (A): the legend '{{pod}}' is empty for 1 series"]
    empty = coverage.examine([board(("llm_h_bucket", ""))], Served(answers, {}), VIEW)
    assert (empty.with_data, empty.without_data, empty.faults) == (0, ["d: P (A)"], [])


def test_two_series_of_one_name_are_a_fault(page: None) -> None:
    """A reader could not tell them apart; a label that only one of them has is enough."""
    del page
    two = [Series({"model": "m", "rank": r}, ((0, 0.5),)) for r in ("0", "1")]
    same = coverage.examine([board(("llm_a_ratio", "{{model}}"))], Served({"llm_a_ratio": two}, {}), VIEW)
    assert same.faults == ["d: P (A): 2 series have the legend 'm'"]
    apart = coverage.examine(
        [board(("llm_a_ratio", "{{model}} {{rank}}"))], Served({"llm_a_ratio": two}, {}), VIEW
    )
    assert apart.faults == []


def test_a_share_may_be_over_one_only_where_the_panel_says_so(page: None) -> None:
    """A rise of 120 % on a panel that goes to 1000; none on one without a maximum."""
    del page
    rise = [Series({"model": "m"}, ((0, 1.2),))]
    one = board(("llm_a_ratio", "{{model}}"))
    assert len(coverage.examine([one], Served({"llm_a_ratio": rise}, {}), VIEW).faults) == 1
    one["panels"][0]["fieldConfig"]["defaults"]["max"] = 1000
    assert coverage.examine([one], Served({"llm_a_ratio": rise}, {}), VIEW).faults == []


def test_a_metric_that_nobody_exports_is_a_fault(page: None) -> None:
    """Neither a target nor a recording rule has it."""
    del page
    found = coverage.examine([board(("llm_renamed", ""))], Served({}, {}), VIEW)
    assert found.faults == ["d: P: nobody exports llm_renamed"]


def test_a_query_that_prometheus_cannot_parse_is_a_fault(page: None) -> None:
    """In the parser's own words."""
    del page
    found = coverage.examine([board(("broken(", ""))], Served({}, {}), VIEW)
    assert found.faults == ["d: P: Prometheus cannot parse 'broken(': unexpected end"]


def test_what_nobody_shows_is_listed_once_a_family(page: None) -> None:
    """A histogram is shown when one of its series is; llm_unused_total is on no page and in no rule."""
    del page
    found = coverage.examine([board(("llm_h_bucket", ""), ("llm_a_ratio", ""))], Served({}, {}), VIEW)
    assert found.uncovered == ["llm_unused_total"]


def test_a_page_whose_hardware_is_missing_is_said_to_be_left_out(page: None) -> None:
    """No GPU: neither a fault nor a silent pass; with the metric it is examined."""
    del page
    boards = [board(("llm_gone", ""))]
    left_out = coverage.examine(boards, Served({}, {}), VIEW, {"d": "llm_gpu_up"})
    assert (left_out.queries, left_out.faults) == (0, [])
    assert left_out.not_examined == ["d needs llm_gpu_up, which no target exports"]
    examined = coverage.examine(boards, Served({}, {}), VIEW, {"d": "llm_a_ratio"})
    assert (examined.queries, examined.not_examined) == (1, [])


def test_what_may_rightly_be_missing_is_told_and_no_fault(page: None) -> None:
    """No load run: its annotation has nothing to ask, on any page."""
    del page
    found = coverage.examine(
        [board(("llm_gone", ""))], Served({}, {}), VIEW, may_be_missing={"llm_gone": "while no load runs"}
    )
    assert found.faults == []
    assert found.not_examined == ["d: P: no llm_gone while no load runs"]
    assert (found.queries, found.with_data, found.without_data) == (1, 0, [])


def test_no_target_that_can_be_read_is_an_error() -> None:
    """Else every metric would be missing, or none."""
    gone = Target("j", "i", {}, "http://127.0.0.1:1/metrics", "up", "", None)
    with pytest.raises(PromError, match="no target"):
        coverage.exported([gone])


def test_every_query_of_ours_is_examined() -> None:
    """Targets, annotations and variables: the count is that of the JSON."""
    boards = list(build_all(load()).values())
    found = [pair for b in boards for pair in coverage._expressions(b)]
    targets = sum(len(p.get("targets", ())) for b in boards for p in b["panels"])
    annotations = sum(len(b["annotations"]["list"]) for b in boards)
    variables = sum(v["type"] == "query" for b in boards for v in b["templating"]["list"])
    assert len(found) == targets + annotations + variables
