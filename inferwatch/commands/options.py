"""Options that several subcommands share -> Settings of the stack they speak of."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from inferwatch.stack import state
from inferwatch.stack.settings import DEFAULT_BASE_PORT, Settings, default_settings

Function = Callable[..., Any]


class HostPort(click.ParamType[tuple[str, int]]):
    """HOST:PORT -> (host, port)."""

    name = "host:port"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        host, _, port = str(value).rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            self.fail(f"{value!r}: write it as HOST:PORT, such as 10.0.0.5:5557", param, ctx)
        return host, int(port)


def stack_folder(function: Function) -> Function:
    """Add --dir."""
    return click.option(
        "--dir",
        "run_dir",
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder of this stack's state, logs and data.  [default: .inferwatch in the checkout]",
    )(function)


def settings_of(run_dir: Path | None, base_port: int | None = None) -> Settings:
    """Settings of the stack in *run_dir*: the port it was started with, unless *base_port* is given."""
    settings = default_settings(run_dir=run_dir)
    known = state.load(settings.state_file).base_port
    return default_settings(run_dir=run_dir, base_port=base_port or known or DEFAULT_BASE_PORT)
