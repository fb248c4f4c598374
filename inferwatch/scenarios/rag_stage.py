"""Rows -> RAG services of the stage `rag`, and the two collectors of the stage `collector`, with what asks and sends."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import urllib3

from inferwatch.scenarios.rag_shape import FAR_MODEL, SIM_MODEL, Instance, Users
from inferwatch.scenarios.row import Row
from inferwatch.scenarios.stage import Stage
from inferwatch.stack import config, sentence_model, services, traces
from inferwatch.stack.blocks import ConstantSeries, write_blocks
from inferwatch.stack.errors import StackError
from inferwatch.stack.processes import Service
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import HOST, Settings
from slo.names import labels, rag_records
from slo.names import rag as names
from slo.spec import Spec

FIRST_PORT = 200
"""Counted from the stage's base port: over all ports of a stack."""
USERS, LINK, SENDER, SECOND_COLLECTOR = "rag-users", "rag-link", "span-sender", "sampler"
ENGINES = {"rag-engine": SIM_MODEL, "rag-engine-far": FAR_MODEL}
NOBODY_PORT = 299
PAST_SECONDS = 3600
STEADY_SPANS = {"per_second": 4, "attributes": 0}
ANSWER_SECONDS = 10.0


def instance_name(row: str, number: int) -> str:
    """Name of one process of a row's service."""
    return f"{row}-{number}"


def ports(rows: Sequence[Row], own: Settings) -> dict[str, int]:
    """Port of everything that only these two stages have; a simulated engine has its control port beside its own."""
    wanted = [USERS, LINK, SENDER]
    for name in ENGINES:
        wanted += [name, f"{name}-control"]
    wanted += [instance_name(row.name, number) for row in rows for number, _ in enumerate(row.rag)]
    return {name: own.base_port + FIRST_PORT + number for number, name in enumerate(wanted)}


def collector_services(own: Settings, paths: Mapping[str, Path]) -> list[Service]:
    """The second collector, which keeps its spans for itself where the first one is broken, and the sender."""
    role = traces.Role(SECOND_COLLECTOR, traces.SAMPLES.ports, "jaeger-otlp")
    port = ports((), own)[SENDER]
    return [
        traces.collector(own, paths[traces.COLLECTOR], role),
        Service(
            SENDER,
            services.python("inferwatch.scenarios.rag_spans", str(port)),
            f"http://{HOST}:{port}",
            "/spans",
        ),
    ]


def rag_services(rows: Sequence[Row], own: Settings, reporter: Reporter) -> list[Service]:
    """Engines, the link, users and every instance; their configurations are written."""
    where = ports(rows, own)
    model = sentence_model.ensure(own.cache_dir, reporter)
    ways = {
        row.name: {"upstream": _engine_url(one.model, where), "spans": FAR_MODEL if one.model == FAR_MODEL else ""}
        for row in rows
        for one in row.rag
        if one.linked
    }  # fmt: skip
    file = own.config_dir / "rag-link.json"
    config.write_json(file, ways)
    link = ("inferwatch.scenarios.rag_link", str(where[LINK]), str(file))
    return [
        *(_engine(name, served, where) for name, served in ENGINES.items()),
        Service(
            LINK,
            services.python(*link),
            f"http://{HOST}:{where[LINK]}",
            "/link",
            env=traces.sender_env(own, "vllm"),
        ),
        *(_instance(row, n, one, own, where, model) for row in rows for n, one in enumerate(row.rag)),
        Service(
            USERS,
            services.python("inferwatch.scenarios.rag_users", str(where[USERS])),
            f"http://{HOST}:{where[USERS]}",
            "/users",
        ),
    ]


def _engine_url(model: str, where: Mapping[str, int]) -> str:
    return next(f"http://{HOST}:{where[name]}" for name, served in ENGINES.items() if served == model)


def _engine(name: str, model: str, where: Mapping[str, int]) -> Service:
    return Service(
        name,
        services.python(
            *("sim", "--host", HOST, "--port", str(where[name]), "--model", model),
            *("--control-port", str(where[f"{name}-control"])),
        ),
        f"http://{HOST}:{where[name]}",
        "/health",
    )


def _instance(
    row: Row, number: int, one: Instance, own: Settings, where: Mapping[str, int], model: Path
) -> Service:
    name = instance_name(row.name, number)
    url = f"http://{HOST}:{where[LINK]}/{row.name}" if one.linked else _engine_url(one.model, where)
    content = {
        "service": row.name,
        "engine": {"url": url, "model": one.model, "max_tokens": 8, "ignore_eos": True},
        "embeddings": [{"version": one.version, "model_dir": str(model)}],
        "corpus": {"passages": 24, "words": 30},
        "retrieval": {"keep": 2},
        "context": {"max_tokens": one.context_tokens},
        "cache": {"seconds": 3600},
        "data_dir": str(own.data_dir / "rag" / name),
    }
    file = own.config_dir / f"{name}.yml"
    config.write_yaml(file, content)
    env = traces.sender_env(own, row.name)
    if not one.sends_spans:
        env["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://{HOST}:{own.base_port + NOBODY_PORT}"
    listen = f"{HOST}:{where[name]}"
    return Service(
        name,
        services.python("rag", "--config", str(file), "--listen", listen, "--faults"),
        f"http://{listen}",
        "/-/ready",
        env=env,
        ready_timeout_seconds=300.0,
    )


def write_targets(rows: Sequence[Row], own: Settings) -> None:
    """All instances of a row under its name."""
    where = ports(rows, own)
    groups = [
        {
            "targets": [f"{HOST}:{where[instance_name(row.name, n)]}" for n, _ in enumerate(row.rag)],
            "labels": {labels.SERVICE: row.name},
        }
        for row in rows
    ]
    config.write_json(own.rag_file, groups)


def widen(prometheus: dict[str, Any], own: Settings) -> None:
    """Scrape the second collector, too."""
    job = next(one for one in prometheus["scrape_configs"] if one["job_name"] == names.JOB_COLLECTOR)
    job["static_configs"][0]["targets"].append(f"{HOST}:{own.port('sampler-self')}")


def write_past(spec: Spec, rows: Sequence[Row], own: Settings, promtool: Path, now: int) -> None:
    """An hour of the hit ratio that a row's cache is said to have had, by the record that the rules compare with."""
    series = [
        ConstantSeries(
            rag_records.CACHE_HIT,
            {labels.SERVICE: row.name, names.LABEL_LEVEL: "l1"},
            row.cache_hit_before,
            now - PAST_SECONDS,
            now,
            spec.intervals.slow_evaluation_seconds,
        )
        for row in rows
        if row.cache_hit_before
    ]
    if series:
        write_blocks(series, own.data_dir / "prometheus", promtool)


def begin(stage: Stage) -> None:
    """Everybody asks and sends as before any fault."""
    for row in stage.rows:
        if row.rag:
            ask(stage, row, row.users)
    if stage.name == "collector":
        urls = [stage.settings.url("otlp-http"), stage.settings.url("sampler-http")]
        post(stage, SENDER, "/spans", dict.fromkeys(urls, STEADY_SPANS))


def ask(stage: Stage, row: Row, users: Users) -> None:
    """From now on the row's users are these."""
    urls = [stage.services[instance_name(row.name, number)].url for number in users.ask]
    post(stage, USERS, "/users", {row.name: {**asdict(users), "urls": urls}})


def post(stage: Stage, service: str, path: str, body: object, method: str = "POST") -> None:
    """Switch something of *service*; StackError when it refuses or does not answer."""
    url = stage.services[service].url + path
    try:
        answer = urllib3.request(
            method, url, body=json.dumps(body).encode(), timeout=ANSWER_SECONDS, retries=False
        )
    except urllib3.exceptions.HTTPError as error:
        raise StackError(f"{url} does not answer: {error}") from error
    if answer.status != 200:
        raise StackError(f"{url} answered HTTP {answer.status}: {answer.data.decode()[:200]}")
