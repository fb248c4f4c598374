"""file_sd JSON as Prometheus reads it, and what happens when it is wrong."""

import json
import logging
import os
from pathlib import Path

import pytest

from exporters.canary.targets import Target, TargetsError, TargetsFile, parse_targets

GOOD = [{"targets": ["127.0.0.1:8000", "http://127.0.0.1:8001"], "labels": {"service": "llm", "zone": "a"}}]


def test_addresses_and_labels_are_kept_as_prometheus_has_them() -> None:
    """Instance is the address letter by letter; labels go along; base URLs are made from them."""
    first, second = parse_targets(json.dumps(GOOD), "t.json")
    assert dict(first.labels) == {"instance": "127.0.0.1:8000", "service": "llm", "zone": "a"}
    assert first.base_url == "http://127.0.0.1:8000"
    assert dict(second.labels)["instance"] == "http://127.0.0.1:8001"
    assert second.base_url == "http://127.0.0.1:8001"


def test_meta_labels_are_read_and_not_shown() -> None:
    """__scheme__ and __param_module are used; nothing that begins with __ becomes a label, nor does job."""
    labels = {"__scheme__": "https", "__param_module": "vllm_tls", "__x": "y", "job": "engines", "empty": ""}
    (target,) = parse_targets(json.dumps([{"targets": ["e:1"], "labels": labels}]), "t.json")
    assert target == Target("e:1", (("instance", "e:1"),), "vllm_tls", "https")
    assert target.base_url == "https://e:1"


def test_an_instance_set_in_the_file_wins() -> None:
    """Prometheus lets the file name the instance; the canary's series must join on the same."""
    (target,) = parse_targets('[{"targets": ["e:1"], "labels": {"instance": "gpu-7"}}]', "t.json")
    assert dict(target.labels) == {"instance": "gpu-7"}


def test_the_same_target_twice_is_asked_once() -> None:
    """Two groups that agree are one target."""
    assert len(parse_targets(json.dumps(GOOD + GOOD), "t.json")) == 2


@pytest.mark.parametrize(
    ("text", "place", "mend"),
    [
        ("[{", "t.json", "write the whole file"),
        ("{}", "t.json: top level", "make it a list"),
        ("[3]", r"t.json: \[0\]: 3", "a group is an object"),
        ('[{"targets": "a:1"}]', r"\[0\].targets: 'a:1'", "make it a list"),
        ('[{"targets": [7]}]', r"\[0\].targets: 7", "write it like"),
        ('[{"targets": [" "]}]', r"\[0\].targets: ' '", "write it like"),
        ('[{"targets": [], "label": {}}]', r"\[0\].label", "unknown key"),
        (
            '[{"targets": [], "labels": []}, {"targets": [], "labels": [1]}]',
            r"\[1\].labels",
            "object of strings",
        ),
        ('[{"targets": [], "labels": {"a": 1}}]', r"\[0\].labels.a: 1", "quotes"),
        ('[{"targets": [], "labels": {"code": "x"}}]', r"\[0\].labels.code: 'x'", "remove it"),
        (
            '[{"targets": ["a:1"]}, {"targets": ["a:1"], "labels": {"b": "c"}}]',
            "'a:1' stands twice",
            "keep one",
        ),
    ],
)
def test_a_fault_names_file_place_value_and_mend(text: str, place: str, mend: str) -> None:
    """Each fault says where it is and what to do about it."""
    with pytest.raises(TargetsError, match=place) as caught:
        parse_targets(text, "t.json")
    assert mend in str(caught.value)


def rewrite(path: Path, text: str, second: int) -> None:
    """Write the file and give it a time of its own, since two writes may share a clock tick."""
    path.write_text(text)
    os.utime(path, (second, second))


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(tmp_path: Path) -> None:
    """refresh() says True exactly when the targets changed."""
    file = TargetsFile(tmp_path / "t.json")
    rewrite(file.path, json.dumps(GOOD), 1)
    assert (file.refresh(), len(file.targets), file.valid) == (True, 2, True)
    assert file.refresh() is False
    rewrite(file.path, '[{"targets": ["127.0.0.1:8001"]}]', 2)
    assert (file.refresh(), len(file.targets)) == (True, 1)


def test_a_bad_file_keeps_the_targets_and_is_counted_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Half a file must not stop the canary: the old targets stay, one error, one line with file and mend."""
    file = TargetsFile(tmp_path / "t.json")
    rewrite(file.path, json.dumps(GOOD), 1)
    file.refresh()
    rewrite(file.path, '[{"targets": ["127', 2)
    with caplog.at_level(logging.INFO):
        assert [file.refresh(), file.refresh()] == [False, False]
        assert (file.errors, file.valid, len(file.targets)) == (1, False, 2)
        (line,) = caplog.messages
        assert str(file.path) in line
        assert "write the whole file" in line
        rewrite(file.path, json.dumps(GOOD), 3)
        assert (file.refresh(), file.valid, file.errors) == (False, True, 1)
        assert "usable again" in caplog.messages[-1]


def test_a_missing_file_is_an_error_until_it_comes(tmp_path: Path) -> None:
    """Started before the file is written, the canary waits for it, visibly not valid."""
    file = TargetsFile(tmp_path / "t.json")
    assert (file.refresh(), file.refresh(), file.valid, file.errors) == (False, False, False, 1)
    rewrite(file.path, json.dumps(GOOD), 1)
    assert (file.refresh(), file.valid) == (True, True)
