"""Whose traces are kept while alerts fire, and when the sampler is told."""

import json
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from inferwatch.collector import firing
from inferwatch.collector.firing import Owner, Watch
from inferwatch.promapi import Sample
from inferwatch.stack.errors import StackError

KNOWN = [
    Owner("llm", "http://a:8000", "llama"),
    Owner("llm", "http://b:8000", "qwen"),
    Owner("rag", "", "llama"),
]


def alert(**labels: str) -> Sample:
    """A firing alert with these labels."""
    return Sample(labels={"alertname": "X", **labels}, timestamp=0.0, value=1.0)


@pytest.mark.parametrize(
    ("labels", "models"),
    [
        ({"model": "qwen", "service": "llm"}, ["qwen"]),
        ({"instance": "http://a:8000", "service": "llm"}, ["llama"]),
        ({"instance": "exporter:9480", "service": "llm"}, ["llama", "qwen"]),
        ({"service": "rag", "stage": "retrieval"}, ["llama"]),
        ({"model": "unknown", "instance": "http://b:8000"}, ["qwen"]),
        ({"job": "prometheus"}, []),
        ({"service": "other"}, []),
    ],
)
def test_an_alert_is_of_the_models_it_names_or_that_are_served_there(
    labels: dict[str, str], models: list[str]
) -> None:
    """Its model, else its instance's, else its service's; an alert on the stack itself is of no model."""
    assert firing.firing_models([alert(**labels)], KNOWN) == models


def test_owners_come_from_engines_and_from_spans() -> None:
    """Both kinds of series name a model; those that could not be told are left out."""
    samples = [
        Sample(labels={"service": "llm", "instance": "i", "model": "llama"}, timestamp=0.0, value=1.0),
        Sample(labels={"service_name": "rag", "gen_ai_request_model": "llama"}, timestamp=0.0, value=1.0),
        Sample(labels={"service": "llm", "instance": "j", "model": "several"}, timestamp=0.0, value=1.0),
    ]

    assert firing.owners(samples) == [Owner("llm", "i", "llama"), Owner("rag", "", "llama")]


def test_the_sampler_is_told_of_changes_and_not_too_often(tmp_path: Path) -> None:
    """Same list: no signal. A change within 30 s of the last signal waits; after that it is told."""
    told: list[str] = []
    file = tmp_path / "firing-models.yaml"
    registry = CollectorRegistry()
    watch = Watch(file, lambda: told.append(file.read_text()), registry)

    assert watch.see([], now=0.0) is False
    assert watch.see(["llama"], now=1.0) is True
    assert watch.see(["llama"], now=2.0) is False
    assert watch.see([], now=20.0) is False
    assert watch.see([], now=31.0) is True
    assert [json.loads(text) for text in told] == [["llama"], []]
    assert registry.get_sample_value("inferwatch_sampler_reloads_total") == 2
    assert registry.get_sample_value("inferwatch_firing_models") == 0


def test_a_sampler_that_cannot_be_told_is_told_at_the_next_look(tmp_path: Path) -> None:
    """A sampler that is being started has no process yet; the failure is counted and the change not forgotten."""
    registry = CollectorRegistry()
    there: list[bool] = []

    def tell() -> None:
        if not there:
            raise ProcessLookupError("no sampler")

    watch = Watch(tmp_path / "firing.yaml", tell, registry)
    assert watch.see(["llama"], now=1.0) is False
    there.append(True)
    assert watch.see(["llama"], now=2.0) is True
    assert registry.get_sample_value("inferwatch_firing_failures_total") == 1


def test_a_restarted_watch_knows_the_list(tmp_path: Path) -> None:
    """What is on disk is in force; nothing is signalled for it again."""
    file = tmp_path / "firing.yaml"
    file.write_text('["llama"]\n')

    assert Watch(file, lambda: None, CollectorRegistry()).see(["llama"], now=1.0) is False


def test_a_name_is_never_an_instruction_to_the_collector(tmp_path: Path) -> None:
    """`${…}` would be filled in wherever it stands: it is written as `$${…}`, and read back as it was."""
    file = tmp_path / "firing-models.yaml"
    models = ["${file:/etc/passwd}", "a$$b"]
    assert Watch(file, lambda: None, CollectorRegistry()).see(models, 100.0)

    assert json.loads(file.read_text()) == ["$${file:/etc/passwd}", "a$$$$b"]
    assert Watch(file, lambda: None, CollectorRegistry()).models == models


@pytest.mark.parametrize("text", ["", "not: json", "7", "\xff"])
def test_a_list_that_is_none_of_ours_is_written_anew(tmp_path: Path, text: str) -> None:
    """Half a write of a crash, or another program's: no reason not to start."""
    file = tmp_path / "firing-models.yaml"
    file.write_text(text, encoding="latin-1")
    watch = Watch(file, lambda: None, CollectorRegistry())

    assert watch.models == []
    assert watch.see(["tiny"], 100.0)
    assert file.read_text() == '["tiny"]\n'


def test_a_launcher_whose_state_cannot_be_read_is_counted_and_asked_again(tmp_path: Path) -> None:
    """The watch goes on: at the next look it tries to tell again."""
    registry = CollectorRegistry()

    def broken() -> None:
        raise StackError("state.json cannot be read")

    watch = Watch(tmp_path / "firing-models.yaml", broken, registry)

    assert not watch.see(["tiny"], 100.0)
    assert watch.models == []
    assert registry.get_sample_value("inferwatch_firing_failures_total") == 1
