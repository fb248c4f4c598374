"""Process tree + configuration -> engine instances, their core processes and the GPUs they use."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from exporters.node.config import EngineEntry, NodeFile
from exporters.node.processtree import Process, ProcessTree

# Command lines of engine servers, and the port each listens on unless told.
_SERVERS: tuple[tuple[str, int], ...] = (
    (r"\bvllm(\.entrypoints\S*)?(\s.*)?\sserve\b|\bvllm\.entrypoints\.openai\.api_server\b", 8000),
    (r"\bsglang\.launch_server\b|\bsglang serve\b", 30000),
    (r"\btext-generation-launcher\b", 3000),
)
# Titles that engine cores give themselves; `sglang::scheduler` is SGLang's.
_CORE_TITLE = re.compile(r"EngineCore|sglang::scheduler")
_RANK = re.compile(r"DP(\d+)")
_SPAWNED = re.compile(r"multiprocessing[./]spawn|--multiprocessing-fork")
_HELPER = re.compile(r"resource_tracker|forkserver|APIServer|ApiServer")


@dataclass(frozen=True)
class Core:
    """One engine core process; `cpus` is where it should run, empty for its affinity mask."""

    pid: int
    start_ticks: int
    instance: str
    dp_rank: str
    model: str
    cpus: str = ""


@dataclass(frozen=True)
class Engine:
    """An engine server, its cores and every process below it."""

    pid: int
    instance: str
    model: str
    cores: tuple[Core, ...]
    rank_of_pid: Mapping[int, str]
    gpus: tuple[str, ...] = ()


def _option(argv: tuple[str, ...], *names: str) -> str | None:
    for at, word in enumerate(argv):
        key, equals, value = word.partition("=")
        if key in names:
            return value if equals else argv[at + 1] if at + 1 < len(argv) else None
    return None


def model_of(argv: tuple[str, ...]) -> str:
    """The name that clients ask for; "" when the command line does not tell."""
    named = _option(argv, "--served-model-name") or _option(argv, "--model", "--model-path", "--model-id")
    if named:
        return named
    words = list(argv)
    following = words[words.index("serve") + 1 :] if "serve" in words else []
    return following[0] if following and not following[0].startswith("-") else ""


def _server(process: Process, file: NodeFile) -> tuple[str, EngineEntry | None] | None:
    """(instance, its configuration) when the process is an engine's server."""
    for entry in file.engines:
        if entry.match is not None and re.search(entry.match, process.title):
            return entry.instance, entry
    for pattern, port in _SERVERS:
        if re.search(pattern, process.title):
            chosen = _option(process.argv, "--port", "-p") or str(port)
            return file.engine_instance.replace("{port}", chosen), None
    return None


def find(tree: ProcessTree, file: NodeFile, on_gpu: Iterable[int] = ()) -> list[Engine]:
    """The engines of this node; `on_gpu` are pids that NVML saw, which tell cores from helpers."""
    servers = {
        pid: found for pid, process in tree.processes.items() if (found := _server(process, file)) is not None
    }
    engines = []
    for pid, (instance, entry) in sorted(servers.items()):
        # A forked child has its parent's command line: the topmost is the server.
        if any(parent.pid in servers for parent in tree.ancestors(pid)[1:]):
            continue
        engines.append(_engine(tree, tree.processes[pid], instance, entry, frozenset(on_gpu)))
    return engines


def _engine(
    tree: ProcessTree, server: Process, instance: str, entry: EngineEntry | None, on_gpu: frozenset[int]
) -> Engine:
    below = tree.descendants(server.pid)
    core_processes = _cores(server, below, on_gpu)
    model = entry.model if entry and entry.model else model_of(server.argv)
    ranks = _ranks(core_processes, entry)
    cores = tuple(
        Core(p.pid, p.start_ticks, instance, ranks[p.pid], model, entry.cpus if entry else "")
        for p in core_processes
    )
    rank_of = {p.pid: _rank_of(tree, p, ranks) for p in (server, *below)}
    return Engine(server.pid, instance, model, cores, rank_of, entry.gpus if entry else ())


def _cores(server: Process, below: list[Process], on_gpu: frozenset[int]) -> list[Process]:
    """By title; else the spawned children that hold a GPU; else those spawned; else the server itself."""
    titled = [p for p in below if _CORE_TITLE.search(p.title) or _CORE_TITLE.search(p.name)]
    if titled:
        return titled
    children = [
        p
        for p in below
        if not _HELPER.search(p.title) and (_SPAWNED.search(p.title) or p.argv == server.argv)
    ]
    return [p for p in children if p.pid in on_gpu] or children or [server]


def _ranks(cores: list[Process], entry: EngineEntry | None) -> dict[int, str]:
    ranks = {}
    for at, process in enumerate(cores):
        told = _RANK.search(process.title) or _RANK.search(process.name)
        first = entry.dp_rank if entry else "0"
        ranks[process.pid] = told.group(1) if told else first if len(cores) == 1 else str(at)
    return ranks


def _rank_of(tree: ProcessTree, process: Process, ranks: Mapping[int, str]) -> str:
    """The rank of a worker: its own title, else that of the core above it, else the only one."""
    told = _RANK.search(process.title)
    if told and process.pid not in ranks:
        return told.group(1)
    for parent in tree.ancestors(process.pid):
        if parent.pid in ranks:
            return ranks[parent.pid]
    return next(iter(ranks.values()), "0")


def visible_uuids(
    environment: Mapping[str, str],
    by_bus: Mapping[str, str],
    fastest_first: list[str] | None = None,
) -> list[str] | None:
    """The UUIDs that a process sees as cuda:0, cuda:1, … ; None when that cannot be told.

    `by_bus` maps PCI bus id -> UUID of every GPU. CUDA numbers devices fastest first unless
    CUDA_DEVICE_ORDER says PCI_BUS_ID, and NVML does not know which is faster: without
    `fastest_first` a number means something only where one order is possible.
    """
    ordered = [by_bus[bus] for bus in sorted(by_bus)]
    if environment.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID" and len(ordered) > 1:
        numbered = fastest_first
    else:
        numbered = ordered
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return numbered or ordered
    found: list[str] = []
    for token in (t.strip() for t in chosen.split(",")):
        if token.isdecimal():
            if numbered is None:
                return None
            if int(token) >= len(numbered):
                break  # CUDA stops at the first device that does not exist
            found.append(numbered[int(token)])
        else:
            matches = [uuid for uuid in ordered if uuid.startswith(token)] if token else []
            if len(matches) != 1:
                break
            found.append(matches[0])
    return found


def gpu_links(
    engines: list[Engine],
    pids_by_uuid: Mapping[str, Iterable[int]],
    file: NodeFile,
    environments: Mapping[int, list[str]],
) -> list[tuple[str, str, str]]:
    """(instance, dp_rank, uuid): by pid where NVML shows it, else as configured, else by the environment.

    `environments` maps a core's pid to the UUIDs its CUDA_VISIBLE_DEVICES names.
    """
    links: dict[tuple[str, str, str], None] = {}
    for engine in engines:
        mine = [
            (engine.instance, engine.rank_of_pid[pid], uuid)
            for uuid, pids in pids_by_uuid.items()
            for pid in pids
            if pid in engine.rank_of_pid
        ]
        if not mine:
            mine = [(engine.instance, core.dp_rank, uuid) for core in engine.cores for uuid in engine.gpus]
        if not mine:
            mine = [
                (engine.instance, core.dp_rank, uuid)
                for core in engine.cores
                for uuid in environments.get(core.pid, [])
            ]
        links.update(dict.fromkeys(mine))
    for entry in file.engines:
        if entry.match is None:
            links.update(dict.fromkeys((entry.instance, entry.dp_rank, uuid) for uuid in entry.gpus))
    return list(links)
