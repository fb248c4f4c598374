"""Pairs of runs against two servers, and what is kept of whom they were measured on."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadtests import identity
from loadtests.plan import closed, parse_plan
from loadtests.rounds import read_rounds, run_rounds
from loadtests.run import LoadError, LoadResult


def test_rounds_take_turns_with_the_same_seeds(server: Any, tmp_path: Path) -> None:
    """A B, then B A; round n sends the same requests to both, and none that an earlier round or try has sent."""
    plan = parse_plan({"base_url": server.url, "model": "ok", "arrival": closed(1, 0.2), "output_tokens": 2})
    order: list[tuple[str, int]] = []
    folders = {tmp_path / "a": f"{server.url}/a", tmp_path / "b": f"{server.url}/b"}
    run_rounds(plan, folders, 2, told=lambda folder, number: order.append((folder.name, number)))
    ours, theirs = read_rounds(tmp_path / "a"), read_rounds(tmp_path / "b")
    run_rounds(plan, {tmp_path / "again": f"{server.url}/a"}, 1)
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
    assert identity.differences(*(identity.collect(run.plan) for run in (ours[0], again))) == []
    assert read_rounds(ours[0].folder)[0].records == ours[0].records


def _first_word(server: Any, run: LoadResult) -> str:
    first = run.records[0].trace_id
    (seen, *_) = (one for one in server.seen if one.headers["x-request-id"] == first)
    return str(seen.body["messages"][0]["content"].split()[0])


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    """The error names the folder."""
    with pytest.raises(LoadError, match="neither a load run nor rounds"):
        read_rounds(tmp_path)


def test_identity_differences() -> None:
    """Versions and memory-dependent sizes may differ, anything else is named with both values."""
    one = {"engine": "vllm", "engine_version": "1", "flags": {"block_size": "16", "num_gpu_blocks": "9"}}
    other = {"engine": "vllm", "engine_version": "2", "flags": {"block_size": "32", "num_gpu_blocks": "8"}}

    assert identity.differences(one, one | {"engine_version": "3"}) == []
    assert identity.differences(one, other) == ["flags.block_size: '16' against '32'"]


def test_identity_of_a_server_that_tells_nothing(tmp_path: Path) -> None:
    """Parts that cannot be asked for are None; machine and load are always there, and it survives a file."""
    plan = parse_plan({"base_url": "http://127.0.0.1:9", "model": "m", "arrival": closed(1, 1)})
    found = identity.collect(plan, {"gpu": "A100"})
    identity.save(found, tmp_path)

    assert (found["engine_version"], found["flags"]) == (None, None)
    assert found["labels"] == {"gpu": "A100"}
    assert found["machine"]["cores"] > 0
    assert "base_url" not in found["load"]
    assert identity.read(tmp_path) == json.loads(json.dumps(found))
    assert identity.read(tmp_path / "none") is None
