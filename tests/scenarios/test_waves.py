"""Stages side by side where the CPUs carry them, else after each other."""

from inferwatch.scenarios.faults import Nothing
from inferwatch.scenarios.main import waves
from inferwatch.scenarios.row import Row, StageName


def _rows(**counts: int) -> list[Row]:
    names: dict[str, StageName] = {"rag": "rag", "fleet": "fleet", "watchers": "watchers", "nodes": "nodes"}
    return [
        Row(f"{stage}-{number}", Nothing(None), stage=names[stage])
        for stage, count in counts.items()
        for number in range(count)
    ]


def _sizes(rows: list[Row], cpus: int) -> list[dict[str, int]]:
    return [{stage: len(own) for stage, own in wave.items()} for wave in waves(rows, cpus)]


def test_few_rows_or_many_cpus_are_one_wave() -> None:
    """Twenty rows a CPU: 40 on two, 83 on five."""
    assert _sizes(_rows(fleet=30, watchers=10), 2) == [{"fleet": 30, "watchers": 10}]
    assert _sizes(_rows(fleet=30, nodes=25, rag=28), 5) == [{"rag": 28, "nodes": 25, "fleet": 30}]


def test_a_stage_that_does_not_fit_begins_the_next_wave() -> None:
    """On two CPUs 12 and 25 rows fit, 30 more do not; one stage is never parted, however large."""
    assert _sizes(_rows(fleet=30, nodes=25, rag=12), 2) == [{"rag": 12, "nodes": 25}, {"fleet": 30}]
    assert _sizes(_rows(fleet=50, rag=1), 1) == [{"rag": 1}, {"fleet": 50}]


def test_no_rows_are_no_wave() -> None:
    """Nothing is started for nothing."""
    assert waves([], 2) == []
