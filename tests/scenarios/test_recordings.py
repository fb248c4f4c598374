"""What is recorded is written for the agents and for the process that moves it; a fault changes only what it names."""

import json
from pathlib import Path

import pytest
import yaml

from exporters.node.config import NodeFile
from inferwatch.scenarios.faults import Nothing, Recorded
from inferwatch.scenarios.recordings import Recordings
from inferwatch.scenarios.row import Row
from inferwatch.scenarios.shown import Card, Core, Page, Shown, Tenant, changed

ROWS = (
    Row(
        "hot", Recorded(Shown(card=Card(clock_events=64))), stage="nodes", engines=0, shows=Shown(card=Card())
    ),
    Row("busy", Nothing(None), stage="nodes", shows=Shown(card=Card(), core=Core(), page=Page())),
    Row("away", Nothing(None), stage="nodes", engines=0, shows=Shown(card=Card(), node="away")),
    Row("guest", Nothing(None), stage="nodes", engines=0, shows=Shown(tenant=Tenant())),
)


@pytest.fixture
def recordings(tmp_path: Path) -> Recordings:
    """Everything written."""
    made = Recordings(tmp_path, 9, ROWS, {"busy": ("http://127.0.0.1:7",)})
    made.prepare()
    return made


def test_each_node_has_its_own_cards(recordings: Recordings) -> None:
    """Two on the common node, one on the other."""
    assert recordings.nodes == ("node", "away")
    names = {
        node: [
            device["calls"]["nvmlDeviceGetUUID"]["return"]
            for device in json.loads(recordings.nvml_file(node).read_text())["devices"]
        ]
        for node in recordings.nodes
    }
    assert names == {"node": ["GPU-hot", "GPU-busy"], "away": ["GPU-away"]}


def test_the_agent_takes_its_file(recordings: Recordings) -> None:
    """The engine is found by its command line and named as Prometheus names it; the tenant by its cgroup."""
    file = NodeFile.model_validate(yaml.safe_load(recordings.agent_file("node").read_text()))
    (engine,) = file.engines
    assert (engine.instance, engine.gpus) == ("http://127.0.0.1:7", ("GPU-busy",))
    assert engine.match == "--served-model-name busy$"
    assert [(tenant.tenant, tenant.cgroup) for tenant in file.tenants] == [("guest", "/guest")]


def test_a_fault_changes_what_it_names(recordings: Recordings) -> None:
    """The core is busier; card and page stay, and so does every other row."""
    recordings.show("busy", Shown(core=Core(busy=1.0)))
    told = json.loads(recordings.world_file.read_text())["rows"]
    assert told["busy"]["core"]["busy"] == 1.0
    assert told["busy"]["page"] == {"running": 2, "bounds": [], "off_scale": 0.0}
    assert told["busy"]["ports"] == [7]
    assert told["guest"] == {"tenant": {"throttled": 0.0, "stalled": 0.0, "oom_kills": 0}}


def test_the_difference_is_what_people_read() -> None:
    """Only what the fault changes."""
    assert changed(ROWS[0].shows, Shown(card=Card(clock_events=64))) == {"clock_events": "64"}
