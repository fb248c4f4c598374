"""Plans: what is refused and how it is said, and the way through a file."""

import json
from pathlib import Path

import pytest

from loadtests.plan import (
    LoadPlan,
    PlanError,
    closed,
    from_spec,
    open_loop,
    parse_plan,
    read_plan,
    write_plan,
)
from slo.delivery import Load

BASE = {"base_url": "http://127.0.0.1:1", "model": "m", "arrival": {"kind": "open", "segments": [
    {"duration_s": 2, "start": 5, "end": 5}]}}  # fmt: skip


def test_file_round_trip(tmp_path: Path) -> None:
    """A plan written and read is the same plan."""
    plan = LoadPlan(
        base_url="https://h:1/",
        model="m",
        arrival=closed(3, 4),
        prompt_tokens="lognormal:9:1:99",  # type: ignore[arg-type] # text is parsed by the validator
        mix={"chat": 1, "embeddings": 2},
        run_nonce="n",
    )
    write_plan(plan, tmp_path / "plan.json")

    assert plan == read_plan(tmp_path / "plan.json")
    assert plan.base_url == "https://h:1"


def test_each_run_of_a_plan_gets_a_nonce_of_its_own(tmp_path: Path) -> None:
    """Written for two runs, a plan differs in its nonce alone; the file of a run is written again as it is."""
    plan = parse_plan(BASE)
    for name in ("one", "two"):
        write_plan(plan, tmp_path / name)
    one, two = read_plan(tmp_path / "one"), read_plan(tmp_path / "two")
    write_plan(one, tmp_path / "repeat")

    assert one.run_nonce and two.run_nonce and one.run_nonce != two.run_nonce
    assert one.model_copy(update={"run_nonce": two.run_nonce}) == two
    assert read_plan(tmp_path / "repeat") == one


def test_files_are_named_from_where_the_plan_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client runs in another folder than the user: the plan that it gets names every file in full."""
    monkeypatch.chdir(tmp_path)
    trace = {"kind": "trace", "trace_format": "azure", "trace_path": "t.csv"}
    names = {"token_file": "token", "ca_file": "/etc/ca.pem", "prompts_file": "../q.jsonl"}
    write_plan(parse_plan({**BASE, "arrival": trace, **names}), tmp_path / "plan.json")
    plan = read_plan(tmp_path / "plan.json")

    assert (plan.arrival.trace_path, plan.token_file) == (str(tmp_path / "t.csv"), str(tmp_path / "token"))
    assert (plan.ca_file, plan.prompts_file) == ("/etc/ca.pem", str(tmp_path / "../q.jsonl"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"base_url": "ftp://x"}, "base_url: 'ftp://x': write it as http://HOST:PORT"),
        ({"base_url": "http://u:p@x"}, "base_url"),
        ({"base_url": "http://x:99999"}, "base_url: 'http://x:99999': Port out of range 0-65535"),
        ({"base_url": "http://x:0"}, "base_url: 'http://x:0': write it as http://HOST:PORT"),
        ({"base_url": "http://a..b:80"}, "base_url: 'http://a..b:80': encoding with 'idna' codec failed"),
        ({"arrival": {"kind": "open"}}, "need segments"),
        ({"arrival": {"kind": "trace"}}, "trace_path"),
        ({"arrival": {"kind": "open", "segments": [{"duration_s": 0, "start": 1, "end": 1}]}}, "above 0"),
        (
            {"arrival": {"kind": "open", "segments": [{"duration_s": 1, "start": 1, "end": float("nan")}]}},
            "arrival.segments.0.end: nan: Input should be a finite number",
        ),
        ({"run_nonce": ""}, "run_nonce: ''"),
        ({"prefix_groups": 10**9}, "prefix_groups: 1000000000"),
        ({"extra_body": {"seed": 3}}, "seed"),
        ({"prompt_tokens": "zipf:3"}, "prompt_tokens: 'zipf:3'"),
        ({"abort_share": 1.5}, "abort_share: 1.5"),
        ({"mix": {}}, "mix"),
        ({"mix": {"chat": 0}}, "one is above 0"),
        ({"mix": {"images": 1}}, "mix.images"),
        ({"retries": {"base_s": 1}}, "retries.base_s"),
        ({"truncate_prompts": True}, "truncate_prompts cuts the prompts of a prompts_file; name one"),
        ({"unknown": 1}, "unknown: no such field; loadtests/plan.py lists them"),
    ],
)
def test_faults_name_key_and_value(change: dict[str, object], said: str) -> None:
    """Each fault is a line with source, key, value and mend."""
    with pytest.raises(PlanError) as caught:
        parse_plan({**BASE, **change}, "p.json")

    assert said in str(caught.value)
    assert str(caught.value).startswith("p.json: ")


def test_unreadable_file_is_named(tmp_path: Path) -> None:
    """A missing file and one that is not JSON say which."""
    (tmp_path / "x.json").write_text("{", encoding="utf-8")

    for name in ("none.json", "x.json"):
        with pytest.raises(PlanError, match=name):
            read_plan(tmp_path / name)


def test_offered_requests() -> None:
    """5 a second for 2 s offer 10; a closed loop offers what the server allows."""
    assert open_loop(5, 2).offered_requests == 10
    assert closed(5, 2).offered_requests is None


def test_stages_of_the_spec() -> None:
    """Stages become flat segments, in order."""
    stages = [{"duration": "1m", "requests_per_second": 2}, {"duration": 30, "requests_per_second": 4}]
    load = Load.model_validate({"stages": stages, "client": {"max_cpu_ratio": 0.7, "max_lag_seconds": 1}})

    arrival = from_spec(load)

    assert [(s.duration_s, s.start, s.end) for s in arrival.segments] == [(60, 2, 2), (30, 4, 4)]
    assert arrival.offered_requests == 240


def test_plans_travel_as_plain_json() -> None:
    """The JSON holds text for lengths, nothing that only Python reads."""
    plan = parse_plan(BASE)

    assert json.loads(plan.model_dump_json())["prompt_tokens"] == "128"


def test_more_processes_than_clients_are_refused() -> None:
    """The second process would have no client of a closed loop of one, and never send its part."""
    with pytest.raises(PlanError, match="processes: 2 are more than the 1 clients"):
        parse_plan({"base_url": "http://h:1", "model": "m", "arrival": closed(1, 5), "processes": 2})
