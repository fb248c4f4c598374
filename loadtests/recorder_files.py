"""Worker number -> the files it writes; known to the client, the runner and the live exporter alike."""

from pathlib import Path


def records_file(folder: Path, worker: int) -> Path:
    """Where worker number *worker* writes its records."""
    return folder / f"records-{worker}.jsonl"


def health_file(folder: Path, worker: int) -> Path:
    """Where worker number *worker* writes its own CPU share and event-loop lag."""
    return folder / f"client-{worker}.jsonl"


def clock_file(folder: Path, worker: int) -> Path:
    """Where worker number *worker* of several writes how its clocks stand against the master's."""
    return folder / f"clock-{worker}.json"
