"""Tools of Alertmanager, as its tests run them: the pinned ones or the distribution's."""

from rich.console import Console

from inferwatch.stack import binaries
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import default_settings


def tool(name: str, old: bool = False) -> str:
    """Path of amtool or alertmanager, the pinned one or the distribution's."""
    find = binaries.from_distribution if old else binaries.resolve
    return str(find(name, default_settings(), Reporter(Console(stderr=True))).path)
