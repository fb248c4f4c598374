"""The parts that generate files, and how each is asked to write or compare them."""

import importlib

# part -> module with `write(check: bool) -> list[str]`, the paths that were stale
GENERATORS = {
    "alerts": "alerts.render",
    "dashboards": "dashboards.render",
    "compose": "inferwatch.compose.render",
    "collector": "inferwatch.collector.render",
    "metrics page": "inferwatch.reference.render",
}


def names() -> tuple[str, ...]:
    """Parts that generate files, in the order they are run."""
    return tuple(GENERATORS)


def run(name: str, *, check: bool) -> list[str]:
    """Write the files of part *name*, or only compare; return the paths that were stale."""
    stale: list[str] = importlib.import_module(GENERATORS[name]).write(check=check)
    return stale
