"""The exposition text."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporters.node.families import FAMILIES
from exporters.node.samples import Sample, label_text, render


def test_a_parser_reads_back_what_was_rendered() -> None:
    """Escapes, whole numbers beyond 2^53 and fractions survive; a family's lines stand together."""
    body = render(
        [
            Sample("llm_gpu_up", label_text(uuid='a"b\\c\nd'), 1),
            Sample("llm_node_gpus_expected", "", 2),
            Sample("llm_gpu_up", label_text(uuid="e"), 0),
            Sample("llm_gpu_energy_joules_total", label_text(uuid="e"), 0.125),
            Sample("llm_gpu_nvlink_bytes_total", label_text(uuid="e"), 2**60),
        ]
    ).decode()
    read = [s for family in text_string_to_metric_families(body) for s in family.samples]

    assert [(s.name, s.labels.get("uuid"), s.value) for s in read] == [
        ("llm_node_gpus_expected", None, 2),
        ("llm_gpu_up", 'a"b\\c\nd', 1),
        ("llm_gpu_up", "e", 0),
        ("llm_gpu_energy_joules_total", "e", 0.125),
        ("llm_gpu_nvlink_bytes_total", "e", 2**60),
    ]
    assert body.count("# TYPE llm_gpu_up gauge\n") == 1


def test_a_family_that_is_not_listed_is_an_error() -> None:
    """A name without type and help is a bug, not a line."""
    with pytest.raises(KeyError):
        render([Sample("llm_gpu_unheard_of", "", 1)])


def test_families_follow_the_conventions() -> None:
    """Counters end in _total and gauges do not; every help is a sentence."""
    for family in FAMILIES:
        assert family.name.endswith("_total") == (family.kind == "counter"), family.name
        assert family.help.rstrip().endswith((".", ")", "other.")), family.name
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_what_is_no_number_is_absent_and_costs_no_other_sample() -> None:
    """NaN and both infinities have no line; a name with half a surrogate pair is shown as a question mark."""
    text = render(
        [
            Sample("llm_node_gpus_healthy", "", float("nan")),
            Sample("llm_node_gpus_expected", "", float("inf")),
            Sample("llm_gpu_up", label_text(gpu="0"), float("-inf")),
            Sample("llm_gpu_up", label_text(gpu="\udcff"), 1.0),
        ]
    ).decode()

    assert [line for line in text.splitlines() if line[0] != "#"] == ['llm_gpu_up{gpu="?"} 1']
