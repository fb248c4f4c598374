"""The rules' benchmark judges what it says, both ways of scraping, and its goal decides the exit status; no figure is judged."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from inferwatch.bench import rules, rules_fleet
from inferwatch.commands.bench import command

ROOT = Path(__file__).resolve().parents[3]
GROUPS = {
    group["name"]
    for path in (ROOT / "alerts" / "rules").glob("*.yaml")
    for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("direct", [False, True], ids=["exporter", "direct"])
def test_a_few_engines_are_judged_by_every_committed_group(direct: bool) -> None:
    """Three engines of two models in a real Prometheus; records that map vLLM's names have something to map."""
    plan = rules_fleet.Plan(instances=3, models=2, warm_seconds=25, timed_seconds=8, direct=direct)
    found = rules.run(plan)

    assert (found["instances"], found["models"], found["goal_seconds"]) == (3, 2, 1.0)
    assert found["scraped"] == ("directly" if direct else "through the exporter")
    assert set(found["groups"]) == set(found["groups_at_their_slowest"]) == GROUPS
    assert found["under_goal"] is (found["evaluation_seconds_max"] < 1.0)
    # 3 engines x 200 mapped series come on top of what was scraped
    assert found["series"] > 3 * found["series_per_engine"] + (600 if direct else 0)
    json.dumps(found)


def test_a_direct_page_is_what_vllm_wrote() -> None:
    """vLLM's own names, counters that rise by a per cent a step, and no exporter's."""
    page = rules_fleet.engine_page(rules_fleet.Plan(direct=True))
    names = {name.partition("{")[0] for name, _ in page}
    text = rules_fleet.page_text([('vllm:generation_tokens_total{model_name="tiny"}', 200.0)], 4, 5)

    assert {"vllm:num_requests_running", "vllm:e2e_request_latency_seconds_bucket"} <= names
    assert not [name for name in names if name.startswith("llm_") or name.endswith("_created")]
    assert text == 'vllm:generation_tokens_total{model_name="model-4"} 210.0\n'


@pytest.mark.parametrize(("under", "code"), [(True, 0), (False, 1)])
def test_a_missed_goal_is_the_exit_status(monkeypatch: pytest.MonkeyPatch, under: bool, code: int) -> None:
    """The plan is what was asked for; the result is printed whether or not the goal is met."""
    asked: list[rules_fleet.Plan] = []

    def run(plan: rules_fleet.Plan) -> dict[str, object]:
        asked.append(plan)
        return {"under_goal": under}

    monkeypatch.setattr(rules, "run", run)
    answer = CliRunner().invoke(command, ["rules", "--direct", "--engines", "250", "--json"])

    assert (answer.exit_code, json.loads(answer.stdout)) == (code, {"under_goal": under})
    assert asked == [rules_fleet.Plan(instances=250, direct=True)]


@pytest.mark.parametrize("words", [["--direct"], ["--engines", "5"]])
def test_only_rules_have_engines_to_choose(words: list[str]) -> None:
    """Another benchmark would silently measure the same as without it."""
    answer = CliRunner().invoke(command, ["engine", *words])

    assert answer.exit_code == 2
    assert "belong to `bench rules`, not to `bench engine`" in " ".join(answer.output.split())
