"""`python -m rag`: a file and flags -> a running service, until a signal ends it."""

import asyncio
import logging
import signal
import sys
from pathlib import Path

import click
from threadpoolctl import threadpool_limits

from inferwatch import tracing
from rag.config import Config, ConfigError, load


@click.command()
@click.option(
    "--config", "path", type=click.Path(path_type=Path, dir_okay=False), help="rag.yml; all keys optional."
)
@click.option("--listen", help="HOST:PORT of the service.")
@click.option("--engine", help="Base URL of an OpenAI-compatible engine.")
@click.option("--model", help="The engine's model.")
@click.option(
    "--model-dir", type=click.Path(path_type=Path), help="The embedding model's folder (first version)."
)
@click.option("--data-dir", type=click.Path(path_type=Path), help="Where indexes are kept.")
@click.option("--faults/--no-faults", default=None, help="Let POST /faults slow, fail and starve stages.")
def main(
    path: Path | None, listen: str | None, engine: str | None, model: str | None, model_dir: Path | None,
    data_dir: Path | None, faults: bool | None,
) -> None:  # fmt: skip
    """Answer questions from passages. Spans go to OTEL_EXPORTER_OTLP_ENDPOINT, where it is set."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    flags = {
        "listen": listen,
        "engine.url": engine,
        "engine.model": model,
        "data_dir": data_dir,
        "faults": faults,
    }
    try:
        config = load(path, flags)
        if model_dir is not None:
            first = config.embeddings[0].model_copy(update={"model_dir": model_dir})
            config = config.model_copy(update={"embeddings": (first, *config.embeddings[1:])})
        asyncio.run(_run(config))
    except (ConfigError, tracing.TracingSetupError, OSError) as error:
        click.echo(str(error), err=True)
        sys.exit(1)


async def _run(config: Config) -> None:
    from rag.app import serve

    end = tracing.install(config.service, attributes={"service.namespace": "inferwatch"})
    until = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, until.set)
    try:
        # One core a multiplication: requests run beside each other, not within each other.
        with threadpool_limits(1):
            await serve(config, until)
    finally:
        await asyncio.to_thread(end)


if __name__ == "__main__":
    main()
