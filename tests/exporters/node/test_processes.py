"""Processes on a GPU: what NVML does not tell has no sample."""

from pathlib import Path
from typing import Any


def _stat(pid: int, name: str, parent: int = 1) -> str:
    return f"{pid} ({name}) S {parent} " + " ".join(["0"] * 48) + "\n"


def test_memory_that_is_not_told_has_no_sample(drive: Any, case: Any, roots: tuple[Path, Path]) -> None:
    """A28: a normal process, None, 0 and the all-ones marker; only one pid is visible."""
    proc = roots[0] / "28290"
    proc.mkdir()
    (proc / "stat").write_text(_stat(28290, "python"))
    (proc / "cmdline").write_bytes(b"python\0train.py\0")
    shown = drive(case("A28-nvml.json"))
    shown.run()
    scrape = shown.scrape()

    memory = {have["pid"]: value for have, value in scrape.all("llm_gpu_process_memory_bytes")}
    names = {have["pid"]: have["process"] for have, _ in scrape.all("llm_gpu_process_memory_bytes")}
    assert memory == {"28290": 1061158912, "324": 0}
    assert names == {"28290": "python", "324": "unknown"}
    assert scrape.one("llm_gpu_processes") == 4
    assert scrape.one("llm_gpu_processes_memory_unknown") == 2
    assert scrape.all("llm_gpu_memory_used_bytes") == []
