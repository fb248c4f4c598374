"""The stage "nodes": the real node agent on recorded GPUs and hosts, recorded engines, a slow remote store."""

from typing import Any

from inferwatch.scenarios.recordings import Recordings
from inferwatch.stack import services
from inferwatch.stack.processes import Service
from inferwatch.stack.settings import HOST, Settings
from slo.names import labels

RECORDED_PROCESS = "recorded"
SLOW_STORE_MATCHER = {"store": "slow"}
"""Only a selector that asks for this goes to the remote store."""


def agent_name(node: str) -> str:
    """Name of the service that is a node's agent."""
    return f"exporter-node-{node}"


def agent_ports(recordings: Recordings) -> dict[str, int]:
    """Node -> port of its agent, below the port of the recorded process."""
    return {node: recordings.port - 1 - number for number, node in enumerate(recordings.nodes)}


def node_services(recordings: Recordings, own: Settings) -> list[Service]:
    """Return the process that moves the recorded numbers, and one agent a node."""
    world = recordings.world_file
    process = Service(
        name=RECORDED_PROCESS,
        argv=services.python("inferwatch.scenarios.recorded", str(world)),
        url=f"http://{HOST}:{recordings.port}",
        ready_path="/-/ready",
    )
    return [
        process,
        *(
            Service(
                name=agent_name(node),
                argv=services.python(
                    *("exporters", "node", "--listen", f"{HOST}:{port}", "--node", node),
                    *("--spec", str(own.spec_path), "--config", str(recordings.agent_file(node))),
                    *("--nvml-recording", str(recordings.nvml_file(node))),
                    *("--proc-root", str(recordings.host_folder(node) / "proc")),
                    *("--sys-root", str(recordings.host_folder(node) / "sys")),
                ),
                url=f"http://{HOST}:{port}",
                ready_path="/-/ready",
            )
            for node, port in agent_ports(recordings).items()
        ),
    ]


def widen(prometheus: dict[str, Any], recordings: Recordings) -> None:
    """Scrape every agent, under its node's name, and know the slow remote store."""
    job = next(one for one in prometheus["scrape_configs"] if one["job_name"] == labels.JOB_NODE)
    job["static_configs"] = [
        {"targets": [f"{HOST}:{port}"], "labels": {labels.INSTANCE: node}}
        for node, port in agent_ports(recordings).items()
    ]
    prometheus["remote_read"] = [
        {
            "url": f"http://{HOST}:{recordings.port}/read",
            "read_recent": True,
            "required_matchers": SLOW_STORE_MATCHER,
            "remote_timeout": "30s",
        }
    ]
