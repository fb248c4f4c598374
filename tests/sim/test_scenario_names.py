"""Names and parameters of scenarios: which there are, and what is refused."""

import pytest

from sim import scenarios
from sim.config import LoadConfig, SimConfig

NAMES = {
    "healthy", "traffic_spike", "slow_decode", "slow_prefill", "kv_thrash", "cache_cold", "errors",
    "admission_reject", "hang", "asleep", "restart", "no_metrics", "client_aborts", "down", "silent",
}  # fmt: skip


def test_every_scenario_asked_for_is_there_and_changes_something() -> None:
    """The names of the list are unique, and each but healthy gives another configuration."""
    names = [scenario.name for scenario in scenarios.SCENARIOS]
    assert set(names) >= NAMES
    assert len(names) == len(set(names))
    base = SimConfig(load=LoadConfig(requests_per_second=5))
    for scenario in scenarios.SCENARIOS:
        assert (scenario.apply(base, scenario.values({})) == base) == (scenario.name == "healthy")


@pytest.mark.parametrize(
    "name, params, said",
    [
        ("slow_decode", {"speed": 2}, "it has: factor"),
        ("slow_decode", {"factor": "two"}, "give a number"),
        ("errors", {"share": 1.5}, "from 0 to 1"),
        ("healthy", {"x": 1}, "it has: none"),
    ],
)
def test_bad_parameters_are_refused_with_a_mend(name: str, params: dict[str, object], said: str) -> None:
    """The message names the parameter and what is allowed."""
    with pytest.raises(ValueError, match=said):
        scenarios.find(name).values(params)


def test_an_unknown_scenario_is_refused_with_the_list() -> None:
    """The message names the scenarios there are."""
    with pytest.raises(ValueError, match="no scenario 'storm'; there are: healthy, traffic_spike"):
        scenarios.find("storm")
