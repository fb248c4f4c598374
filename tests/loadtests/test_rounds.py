"""Pairs of runs against two servers, and whether runs are such pairs."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from loadtests import identity
from loadtests.plan import closed, parse_plan
from loadtests.rounds import not_in_turn, read_rounds, run_rounds
from loadtests.run import LoadError, LoadResult

LABELS = {"gpu": "A100"}


def test_rounds_take_turns_with_the_same_seeds(server: Any, tmp_path: Path) -> None:
    """A B, then B A; round n sends the same requests to both, and none that an earlier round or try has sent."""
    plan = parse_plan({"base_url": server.url, "model": "ok", "arrival": closed(1, 0.2), "output_tokens": 2})
    order: list[tuple[str, int]] = []
    folders = {tmp_path / "a": f"{server.url}/a", tmp_path / "b": f"{server.url}/b"}
    run_rounds(
        plan, folders, 2, labels=LABELS, told=lambda folder, number: order.append((folder.name, number))
    )
    ours, theirs = read_rounds(tmp_path / "a"), read_rounds(tmp_path / "b")
    run_rounds(plan, {tmp_path / "again": f"{server.url}/a"}, 1, labels=LABELS)
    (again,) = read_rounds(tmp_path / "again")

    assert order == [("a", 0), ("b", 0), ("b", 1), ("a", 1)]
    assert [run.plan.random_seed for run in ours] == [0, 1] == [run.plan.random_seed for run in theirs]
    assert ours[1].records[0].trace_id == theirs[1].records[0].trace_id
    nonces = [run.plan.run_nonce for run in (*ours, again)]
    assert nonces[:2] == [run.plan.run_nonce for run in theirs]
    assert None not in nonces and len(set(nonces)) == 3
    assert _first_word(server, again) != _first_word(server, ours[0]) == _first_word(server, theirs[0])
    kept = [identity.read(run.folder) or {} for run in (ours[0], theirs[0], again)]
    assert identity.differences(kept[0], kept[1]) == [] == identity.differences(kept[0], kept[2])
    assert identity.differences(*(identity.collect(run.plan, LABELS) for run in (ours[0], again))) == []
    assert read_rounds(ours[0].folder)[0].records == ours[0].records
    assert not_in_turn(ours, theirs) is None


def _first_word(server: Any, run: LoadResult) -> str:
    first = run.records[0].trace_id
    (seen, *_) = (one for one in server.seen if one.headers["x-request-id"] == first)
    return str(seen.body["messages"][0]["content"].split()[0])


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    """The error names the folder."""
    with pytest.raises(LoadError, match="neither a load run nor rounds"):
        read_rounds(tmp_path)


def test_pairs_that_the_gate_would_refuse_are_not_run(server: Any, tmp_path: Path) -> None:
    """The server tells no flags and no label does: said before an hour of load, not after it. One server is no pair."""
    plan = parse_plan({"base_url": server.url, "model": "ok", "arrival": closed(1, 0.2), "output_tokens": 2})
    with pytest.raises(LoadError, match="--label"):
        run_rounds(plan, {tmp_path / "a": f"{server.url}/a", tmp_path / "b": f"{server.url}/b"}, 1)
    assert list(tmp_path.iterdir()) == []

    run_rounds(plan, {tmp_path / "a": server.url}, 1)
    assert len(read_rounds(tmp_path / "a")) == 1


def _runs(*times: tuple[float, float]) -> list[LoadResult]:
    plan = parse_plan({"base_url": "http://h:1", "model": "m", "arrival": closed(1, 1)})
    return [LoadResult(Path(f"r{n}"), plan, began, ended, 0, False) for n, (began, ended) in enumerate(times)]


def test_rounds_in_turn_are_pairs_whichever_came_first() -> None:
    """A B, then B A; the third round of the baseline has no partner and is not looked at."""
    runs = _runs((0, 9), (30, 39))
    baseline = _runs((10, 19), (20, 29), (5, 8))

    assert not_in_turn(runs, baseline) is None


@pytest.mark.parametrize(
    "baseline", [[(-86400, -86391), (-86390, -86381)], [(500, 509), (510, 519)], [(10, 21), (40, 49)]]
)
def test_another_days_baseline_is_no_pair(baseline: list[tuple[float, float]]) -> None:
    """All rounds of the baseline before, or after, those of the run; or a round that goes on into the next pair."""
    found = not_in_turn(_runs((0, 9), (20, 29)), _runs(*baseline))

    assert found is not None
    assert "pair 2 of rounds began before pair 1 was over" in found
    assert "--against" in found


def test_one_pair_has_no_turn() -> None:
    """A single round of each cannot show that the machine's drift met both alike."""
    found = not_in_turn(_runs((0, 9)), _runs((10, 19)))

    assert found is not None
    assert "one pair" in found


def test_rounds_are_read_in_the_order_of_their_numbers(server: Any, tmp_path: Path) -> None:
    """Round 100 comes after round 99 and not after round 10."""
    plan = parse_plan({"base_url": server.url, "model": "ok", "arrival": closed(1, 0.2), "max_requests": 1})
    run_rounds(plan, {tmp_path / "a": server.url}, 1, labels=LABELS)
    for number in (9, 10, 99, 100):
        shutil.copytree(tmp_path / "a" / "round-00", tmp_path / "a" / f"round-{number:02d}")

    assert [run.folder.name for run in read_rounds(tmp_path / "a")] == [
        f"round-{number}" for number in ("00", "09", "10", "99", "100")
    ]
