"""What slo.yaml may say of a RAG service, and what each wrong value is told."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from slo.names import rag as names
from slo.spec import DEFAULT_PATH, SpecError, load, parse

Raw = dict[str, Any]


@pytest.fixture
def raw() -> Raw:
    """The shipped file, to be changed."""
    return copy.deepcopy(yaml.safe_load(DEFAULT_PATH.read_text(encoding="utf-8")))


def test_shipped_stages_in_their_order() -> None:
    """The whole request and five stages, each with its promise."""
    stages = load().rag.stages

    assert [(s.id, s.threshold_seconds, s.max_error_ratio) for s in stages] == [
        ("request", 5.0, 0.01),
        ("embedding", 0.3, 0.02),
        ("retrieval", 0.2, 0.02),
        ("rerank", 0.5, 0.02),
        ("assemble", 0.1, 0.02),
        ("generate", 2.5, 0.02),
    ]


def test_every_threshold_of_a_latency_is_a_bucket_bound_of_span_metrics() -> None:
    """The collector's histograms can tell exactly who kept a promise: those of engines and of stages."""
    spec = load()
    promised = [s.threshold_seconds for s in spec.services[0].slos if s.threshold_seconds]
    promised += [stage.threshold_seconds for stage in spec.rag.stages]

    assert set(promised) <= set(names.BOUNDS_SECONDS)
    assert {2.0, 0.5, 0.1, 5.0, 0.3, 0.2, 2.5} == set(promised)


CASES: dict[str, tuple[Callable[[Raw], Any], str]] = {
    "threshold between two bounds": (
        lambda r: r["rag"]["stages"][2].update(threshold_seconds=0.25),
        "rag.stages[2].threshold_seconds: 0.25: 0.25 is not a bucket bound of span metrics; use 0.2 or 0.3",
    ),
    "threshold over every bound": (
        lambda r: r["rag"]["stages"][0].update(threshold_seconds=100),
        "100 is not a bucket bound of span metrics; use 80",
    ),
    "a stage left out": (
        lambda r: r["rag"]["stages"].pop(3),
        "each of request, embedding, retrieval, rerank, assemble, generate stands once",
    ),
    "an unknown stage": (
        lambda r: r["rag"]["stages"][3].update(id="ranking"),
        "stages: request, embedding, retrieval, ranking, assemble, generate; each of",
    ),
    "a stage longer than the request": (
        lambda r: r["rag"]["stages"][5].update(threshold_seconds=7.5),
        "generate may take 7.5 s and the whole request 5 s; lower the first or raise the second",
    ),
    "errors in per cent": (
        lambda r: r["rag"]["stages"][1].update(max_error_ratio=2),
        "rag.stages[1].max_error_ratio: 2: Input should be less than 1",
    ),
    "a judged quantile that nobody records": (
        lambda r: r["rag"].update(judged_quantile=0.9),
        "judged_quantile 0.9 is not in quantiles; add it there",
    ),
    "rates that fall": (
        lambda r: r["rag"].update(rates_per_second=[0, 2, 1]),
        "rates_per_second: [0.0, 2.0, 1.0] must rise",
    ),
    "rates that begin over 0": (lambda r: r["rag"].update(rates_per_second=[1, 2]), "put 0 in front"),
    "history longer than the lookback": (
        lambda r: r["rag"]["cache"].update(min_history="1d"),
        "min_history 86400 s is longer than lookback 21600 s; shorten it",
    ),
    "versions judged by a handful": (
        lambda r: r["rag"]["versions"].update(min_requests=8),
        "rag.versions.min_requests: 8: Input should be greater than or equal to 100",
    ),
    "a pool that may wait between bounds": (
        lambda r: r["rag"]["pool"].update(max_wait_seconds=0.06),
        "0.06 is not a bucket bound of span metrics; use 0.05 or 0.075",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_each_fault_is_named_with_its_key_and_mend(case: tuple[Callable[[Raw], Any], str], raw: Raw) -> None:
    """A wrong value is refused with one line that names file, key, value and mend."""
    change, expected = case
    change(raw)

    with pytest.raises(SpecError) as error:
        parse(raw, source="my.yaml")

    assert "my.yaml: rag" in str(error.value)
    assert expected in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_length_classes_say_their_bounds() -> None:
    """Each class begins where the one before ends: 0-255, then 256."""
    begins = [int(text.rstrip("+").partition("-")[0]) for text in names.LENGTH_CLASSES]
    ends = [int(text.partition("-")[2]) for text in names.LENGTH_CLASSES if "-" in text]

    assert begins == list(names.LENGTH_BOUNDS_TOKENS)
    assert [end + 1 for end in ends] == begins[1:]
