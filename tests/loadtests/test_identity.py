"""What is kept of whom a run was measured on, and which runs are of unlike things."""

import json
from pathlib import Path

from loadtests import identity
from loadtests.plan import closed, parse_plan


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


def test_two_engines_that_tell_nothing_are_not_known_to_be_alike() -> None:
    """No flags and no labels on both sides: refused, with what to do; a label on both is the user's word for it."""
    mute = {"engine": "tgi", "flags": None, "labels": {}}
    named = {**mute, "labels": {"gpu": "A100"}}
    (line,) = identity.differences(mute, mute)

    assert "neither engine tells its flags" in line
    assert "--label" in line
    assert identity.differences(named, named) == []
    assert identity.differences(named, mute) == ["labels.gpu: 'A100' against None"]
    assert identity.differences(mute, {**mute, "flags": {"block_size": "16"}}) == [
        "flags.block_size: None against '16'"
    ]


def test_a_file_of_the_load_is_its_content(tmp_path: Path) -> None:
    """The same questions in another folder are the same load; other questions under the same name are not."""
    kept = []
    for folder, question in (("a", "q"), ("b", "q"), ("a", "other")):
        path = tmp_path / folder / "questions.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"prompt": question, "answer": "a"}) + "\n", encoding="utf-8")
        raw = {"base_url": "http://127.0.0.1:1", "model": "m", "arrival": closed(1, 1)}
        plan = parse_plan({**raw, "prompts_file": str(path), "keep_text": True})
        kept.append(identity.collect(plan, {"gpu": "A100"}))

    assert identity.differences(kept[0], kept[1]) == []
    assert [line.split(":")[0] for line in identity.differences(kept[0], kept[2])] == ["load.prompts_file"]
