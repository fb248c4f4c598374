"""`python -m inferwatch.compose.engine_cpu install|serve`: the native launcher's vLLM on a CPU, in a container."""

import os
from pathlib import Path

import click

from inferwatch.stack import traces, vllm_cpu
from inferwatch.stack.progress import to_stderr
from inferwatch.stack.settings import Settings

PORT = 8000
ROOT = Path(__file__).resolve().parent.parent.parent
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
CACHE = Path("/var/cache/inferwatch")


def settings() -> Settings:
    """Settings whose port of the engine is PORT."""
    return Settings(ROOT, Path("/tmp/inferwatch"), CACHE, ROOT / "slo.yaml", base_port=PORT)


def argv(engine: vllm_cpu.VllmCpu) -> tuple[list[str], dict[str, str]]:
    """The command and its environment: the launcher's, listening on every address of the container."""
    service = vllm_cpu.service(engine, settings(), traces.vllm_args(os.environ.get(ENDPOINT)))
    words = list(service.argv)
    words[words.index("--host") + 1] = "0.0.0.0"
    return words, {**service.env, **traces.vllm_env(vllm_cpu.SERVED_MODEL), "HOME": "/tmp"}


@click.command()
@click.argument("what", type=click.Choice(["install", "serve"]))
def main(what: str) -> None:
    """Install vLLM while the image is built, or become its server."""
    engine = vllm_cpu.ensure(settings(), to_stderr()) if what == "install" else installed()
    if what == "serve":
        words, environment = argv(engine)
        os.execvpe(words[0], words, {**os.environ, **environment})


def installed() -> vllm_cpu.VllmCpu:
    """What `install` left in the image; nothing is written, for the image is read-only."""
    version = settings().pins().of("vllm_cpu")
    home = CACHE / f"vllm-cpu-{version}"
    if not (home / "complete.json").is_file():
        raise click.ClickException(f"{home} holds no whole vLLM; build the image again")
    return vllm_cpu.VllmCpu(version, home / "venv" / "bin" / "python", home / "model")


if __name__ == "__main__":
    main()
