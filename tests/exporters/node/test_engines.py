"""Engines in the process tree, and which GPU is whose."""

from pathlib import Path
from typing import Any

import pytest

from exporters.node.config import EngineEntry, NodeFile
from exporters.node.engines import find, gpu_links, model_of, visible_uuids
from exporters.node.processtree import ProcessTree

Add = Any


@pytest.fixture
def add(tmp_path: Path) -> Add:
    """Add a process to a /proc tree: pid, parent, command line, name."""

    def one(pid: int, parent: int, *argv: str, name: str = "python3") -> None:
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "stat").write_text(
            f"{pid} ({name}) S {parent} " + "0 " * 17 + f"{pid * 10} 0 0 " + "0 " * 30
        )
        (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in argv))

    return one


def _tree(root: Path) -> ProcessTree:
    tree = ProcessTree(root)
    tree.refresh()
    return tree


def test_vllm_by_the_titles_it_gives_itself(add: Add, tmp_path: Path) -> None:
    """A server with two data-parallel cores, a worker below one, and helpers."""
    add(
        10,
        1,
        "/usr/bin/python3",
        "/usr/local/bin/vllm",
        "serve",
        "org/model",
        "--port",
        "8100",
        "--served-model-name",
        "m",
    )
    add(11, 10, "VLLM::EngineCore_DP0", name="VLLM::EngineCor")
    add(12, 10, "VLLM::EngineCore_DP1", name="VLLM::EngineCor")
    add(13, 12, "VLLM::Worker_DP1_TP1", name="VLLM::Worker_DP")
    add(14, 10, "python3", "-c", "from multiprocessing.resource_tracker import main;main(5)")
    add(99, 1, "bash")

    (engine,) = find(_tree(tmp_path), NodeFile())

    assert (engine.instance, engine.model) == ("http://127.0.0.1:8100", "m")
    assert [(core.pid, core.dp_rank) for core in engine.cores] == [(11, "0"), (12, "1")]
    assert (engine.rank_of_pid[13], engine.rank_of_pid[11]) == ("1", "0")
    assert gpu_links([engine], {"GPU-a": [11], "GPU-b": [13], "GPU-c": [99]}, NodeFile(), {}) == [
        ("http://127.0.0.1:8100", "0", "GPU-a"),
        ("http://127.0.0.1:8100", "1", "GPU-b"),
    ]


def test_vllm_without_titles_is_told_by_its_spawned_children(add: Add, tmp_path: Path) -> None:
    """Without setproctitle the core is the spawned child; of several, the one that holds a GPU."""
    spawn = (
        "python3",
        "-c",
        "from multiprocessing.spawn import spawn_main; spawn_main()",
        "--multiprocessing-fork",
    )
    add(20, 1, "python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "/models/tiny")
    add(21, 20, *spawn)
    add(22, 20, *spawn)
    tree = _tree(tmp_path)

    assert [core.pid for core in find(tree, NodeFile())[0].cores] == [21, 22]
    (engine,) = find(tree, NodeFile(engine_instance="vllm:{port}"), on_gpu=[22])
    assert [(core.pid, core.dp_rank, core.instance) for core in engine.cores] == [(22, "0", "vllm:8000")]
    assert engine.model == "/models/tiny"


def test_forked_children_are_not_servers_of_their_own(add: Add, tmp_path: Path) -> None:
    """A fork has its parent's command line."""
    add(30, 1, "vllm", "serve", "m")
    add(31, 30, "vllm", "serve", "m")

    (engine,) = find(_tree(tmp_path), NodeFile())

    assert (engine.pid, [core.pid for core in engine.cores]) == (30, [31])


def test_an_engine_in_one_process_is_its_own_core(add: Add, tmp_path: Path) -> None:
    """Multiprocessing switched off."""
    add(40, 1, "vllm", "serve", "m")

    assert [core.pid for core in find(_tree(tmp_path), NodeFile())[0].cores] == [40]


def test_sglang_is_known_by_its_scheduler(add: Add, tmp_path: Path) -> None:
    """SGLang's server listens on 30000 and its scheduler is the core."""
    add(50, 1, "python3", "-m", "sglang.launch_server", "--model-path=qwen")
    add(51, 50, "sglang::scheduler")
    add(52, 50, "sglang::detokenizer")

    (engine,) = find(_tree(tmp_path), NodeFile())

    assert (engine.instance, engine.model) == ("http://127.0.0.1:30000", "qwen")
    assert [core.pid for core in engine.cores] == [51]


def test_configuration_names_what_pids_cannot(add: Add, tmp_path: Path) -> None:
    """An unknown server by its command line, and an engine whose pids a container hides."""
    add(60, 1, "/opt/ours", "--weights", "x")
    file = NodeFile(
        engines=(
            EngineEntry(
                instance="a:1", match=r"^/opt/ours", dp_rank="3", model="ours", gpus=("GPU-a",), cpus="2-3"
            ),
            EngineEntry(instance="b:2", gpus=("GPU-b", "GPU-c")),
        )
    )

    engines = find(_tree(tmp_path), file)

    assert [(core.instance, core.dp_rank, core.model, core.cpus) for core in engines[0].cores] == [
        ("a:1", "3", "ours", "2-3")
    ]
    assert gpu_links(engines, {}, file, {}) == [
        ("a:1", "3", "GPU-a"),
        ("b:2", "0", "GPU-b"),
        ("b:2", "0", "GPU-c"),
    ]


def test_a_pid_that_nvml_shows_goes_before_configuration(add: Add, tmp_path: Path) -> None:
    """What is seen is truer than what was written down."""
    add(70, 1, "vllm", "serve", "m")
    engines = find(_tree(tmp_path), NodeFile())

    links = gpu_links(engines, {"GPU-seen": [70]}, NodeFile(), {70: ["GPU-from-environment"]})
    hidden = gpu_links(engines, {}, NodeFile(), {70: ["GPU-from-environment"]})

    assert links == [("http://127.0.0.1:8000", "0", "GPU-seen")]
    assert hidden == [("http://127.0.0.1:8000", "0", "GPU-from-environment")]


@pytest.mark.parametrize(
    ("argv", "model"),
    [
        (("vllm", "serve", "a/b", "--port", "1"), "a/b"),
        (("vllm", "serve", "a/b", "--served-model-name=c"), "c"),
        (("vllm", "serve", "--model", "d"), "d"),
        (("vllm", "serve", "--port", "1"), ""),
        (("vllm", "--served-model-name"), ""),
    ],
)
def test_the_model_is_the_name_that_clients_use(argv: tuple[str, ...], model: str) -> None:
    """Served name, else --model, else what follows `serve`."""
    assert model_of(argv) == model


def test_nvml_index_is_not_cuda_index(case: Any) -> None:
    """A32: which card is cuda:0 under four environments."""
    machine = case("A32-machine.json")
    by_bus = {device["pci"]: device["uuid"] for device in machine["nvml_order"]}
    environments = [{k: v for k, v in e.items() if v is not None} for e in case("A32-cases.json")]

    seen = [visible_uuids(e, by_bus, machine["cuda_default_order"]) for e in environments]

    assert [uuids[0] for uuids in seen if uuids] == [
        "GPU-bbbb2222",
        "GPU-aaaa1111",
        "GPU-aaaa1111",
        "GPU-bbbb2222",
    ]


def test_a_number_without_a_known_order_means_nothing(case: Any) -> None:
    """NVML does not know which of two different cards CUDA calls faster: unknown, not guessed."""
    machine = case("A32-machine.json")
    by_bus = {device["pci"]: device["uuid"] for device in machine["nvml_order"]}

    assert visible_uuids({"CUDA_VISIBLE_DEVICES": "0"}, by_bus) is None
    assert visible_uuids({"CUDA_VISIBLE_DEVICES": ""}, by_bus) == []
    assert visible_uuids({"CUDA_VISIBLE_DEVICES": "GPU-b"}, by_bus) == ["GPU-bbbb2222"]
    assert visible_uuids({"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1,7,0"}, by_bus) == [
        "GPU-bbbb2222"
    ]


def test_a_process_that_names_odd_devices_costs_nobody_else_a_reading(case: Any) -> None:
    """Environments are anybody's: a superscript two is a digit to Unicode, and no device to CUDA."""
    machine = case("A32-machine.json")
    by_bus = {device["pci"]: device["uuid"] for device in machine["nvml_order"]}
    environment = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "\u00b2"}

    assert visible_uuids(environment, by_bus) == []
