"""`inferwatch drift fit`: healthy vectors -> a reference profile; `inferwatch drift e2e`: all of it on real parts."""

import io
import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from inferwatch.stack.errors import StackError


@click.group("drift")
def command() -> None:
    """Reference profiles of embeddings, and the end-to-end run."""


@command.command("fit")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--from", "window", metavar="URL", help="Ingest port of a running exporter: fit to its present window."
)
@click.option(
    "--token-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Its ingest token."
)
@click.option("--model", required=True, help="The model, as its answers name it.")
@click.option("--version", default="", help="Its version, where the sender states one.")
@click.option("--tenant", default="", help="With --from: whose window.")
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The profile, .npz."
)
@click.option("--seed", default=7, show_default=True, help="The same vectors and seed give the same profile.")
def fit_command(
    files: tuple[Path, ...], window: str | None, token_file: Path | None, model: str, version: str, tenant: str,
    out: Path, seed: int,
) -> None:  # fmt: skip
    """
    Fit a reference to FILES (.npy of shape (n, dimension), .jsonl with one vector a line) or to a running window.

    Give healthy vectors of a whole day: 4000 and more judge best. Takes about a minute on one core.
    """
    from threadpoolctl import threadpool_limits

    from exporters.drift.fit import fit
    from exporters.drift.profile import ProfileError, save
    from slo import spec

    if bool(files) == bool(window):
        raise StackError("give either FILES or --from URL: the healthy vectors to fit to")
    vectors = _window(window, token_file, model, version, tenant) if window else _read(files)
    try:
        with threadpool_limits(1):
            profile = fit(vectors, model, version, spec.load().drift, seed=seed)
    except ProfileError as error:
        raise StackError(str(error)) from error
    save(profile, out)
    sizes = ", ".join(str(one.size) for one in profile.calibrations)
    click.echo(
        f"{out}: model {model!r}, version {version!r}, dimension {profile.dimension}, {profile.count} vectors; "
        f"windows of {sizes} vectors are judged; name it under `references` in drift.yml"
    )


def _read(files: tuple[Path, ...]) -> Any:
    import numpy as np

    rows: list[Any] = []
    for path in files:
        try:
            if path.suffix == ".npy":
                rows += list(np.load(path, allow_pickle=False))
            else:
                rows += [
                    json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
                ]
        except (OSError, ValueError) as error:
            raise StackError(
                f"{path}: cannot be read ({error}); give .npy, or .jsonl with a vector a line"
            ) from error
    return rows


def _window(url: str, token_file: Path | None, model: str, version: str, tenant: str) -> Any:
    import numpy as np
    import urllib3

    headers = {"Authorization": f"Bearer {token_file.read_text().strip()}"} if token_file else {}
    fields = {"model": model, "version": version, "tenant": tenant}
    try:
        answer = urllib3.request(
            "GET", f"{url.rstrip('/')}/v1/window", fields=fields, headers=headers, timeout=30.0, retries=False
        )
    except urllib3.exceptions.HTTPError as error:
        raise StackError(f"{url} does not answer ({error}); give the exporter's ingest port") from error
    if answer.status != 200:
        raise StackError(
            f"{url} answered HTTP {answer.status}: {answer.data[:300].decode('utf-8', 'replace')}"
        )
    return np.load(io.BytesIO(answer.data), allow_pickle=False)


@command.command("e2e")
def e2e_command() -> None:
    """
    A real vLLM with real sentence embeddings behind the tap, Prometheus, Alertmanager: 4 to 6 minutes.

    Windows are compressed: 20 s stand for the 15 minutes of slo.yaml. Exit 0 only if every claim holds.
    """
    from threadpoolctl import threadpool_limits

    from inferwatch.bench import drift_sources
    from inferwatch.bench.drift_env.texts import domains
    from inferwatch.commands.options import settings_of
    from inferwatch.drift_e2e import main
    from inferwatch.drift_e2e.embedder import VllmEmbedder
    from inferwatch.drift_e2e.plan import Plan
    from inferwatch.stack import vllm_cpu
    from inferwatch.stack.progress import Reporter

    plan, reporter = Plan(), Reporter(Console(stderr=True))
    settings = settings_of(None, E2E_BASE_PORT)
    sources = drift_sources.ensure(settings.cache_dir, reporter)
    texts = domains(sources.sdist)
    topics = {
        "reference": texts["movies"][: plan.reference_texts],
        "healthy": texts["movies"][plan.reference_texts :],
        "shifted": texts["amazon"],
    }
    embedder = VllmEmbedder(vllm_cpu.ensure(settings, reporter), sources, settings, reporter)
    with threadpool_limits(1):
        result = main.run(settings, reporter, embedder, topics, plan)
    click.echo(json.dumps(result))
    if not result["passed"]:
        raise SystemExit(1)


E2E_BASE_PORT = 19500
