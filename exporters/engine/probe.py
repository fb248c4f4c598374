"""One probe from target text to answer: allow, fetch, ask the version where it is not known, translate."""

import asyncio
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from exporters.engine.adapter import Adapter
from exporters.engine.config import AUTO, Config, Module
from exporters.engine.fetch import Answer, Progress, Upstream
from exporters.engine.labels import LabelCache
from exporters.engine.probe_error import ProbeError
from exporters.engine.registry import ADAPTERS, BY_NAME
from exporters.engine.render import EngineVersion, ProbeStats, render_probe, render_reading
from exporters.engine.targets import (
    Address,
    Resolve,
    Target,
    TargetRefused,
    checked_address,
    parse_target,
    system_resolve,
)
from exporters.engine.translate import Reading, spellings, translate
from slo.names import engine as names

_VERSION_BYTES = 64 * 1024
_VERSION_SHARE = 0.5  # of the time left, so that a hanging /version costs its label and not the probe
_VERSION_TEXT = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+!_-]{0,63}\Z")
_VERSIONS_KEPT = 2048
_LARGE_BYTES = 512 * 1024  # translated in a thread, so that other probes are answered meanwhile
_START_TIME = b"\nprocess_start_time_seconds "


@dataclass(frozen=True)
class Outcome:
    """The answer's text and how the probe ended ("success" or a reason)."""

    body: bytes
    result: str
    translate_s: float


@dataclass
class Prober:
    """Probes targets; holds what is kept between probes: the label cache and versions by process.

    A version is remembered under target, module and the engine process's start time as its page states
    it, so that a restarted engine is asked again; a page without a start time is asked every time.
    """

    config: Config
    upstream: Upstream
    cache: LabelCache
    resolve: Resolve = system_resolve
    clock: Callable[[], float] = time.perf_counter
    _versions: dict[tuple[str, ...], EngineVersion] = field(default_factory=dict)

    def module(self, name: str) -> Module:
        """The module of that name; raises TargetRefused."""
        module = self.config.modules.get(name)
        if module is None:
            raise TargetRefused(
                f"no module {name!r}; ask for one of {', '.join(sorted(self.config.modules))}"
            )
        return module

    async def probe(self, text: str, module_name: str, timeout_s: float) -> Outcome:
        """Probe the target `text` within `timeout_s`; raises TargetRefused, and nothing else."""
        target, module = parse_target(text), self.module(module_name)
        run = _Run(self, target, module, module_name, min(timeout_s, module.timeout_s))
        return await run.outcome()

    def known_version(self, key: tuple[str, ...]) -> EngineVersion | None:
        """The version remembered for a process."""
        return self._versions.get(key)

    def remember(self, key: tuple[str, ...], version: EngineVersion) -> None:
        """Keep a version, dropping the oldest beyond the bound."""
        if len(self._versions) >= _VERSIONS_KEPT:
            del self._versions[next(iter(self._versions))]
        self._versions[key] = version


class _Run:
    """A single probe under way."""

    def __init__(
        self, prober: Prober, target: Target, module: Module, module_name: str, timeout_s: float
    ) -> None:
        self._prober = prober
        self._target = target
        self._module = module
        self._module_name = module_name
        self._timeout_s = timeout_s
        self._started = prober.clock()
        self._progress = Progress()
        self._translate_s = 0.0

    async def outcome(self) -> Outcome:
        """Run it to its end and render what came of it."""
        reading, text, failure = None, b"", None
        try:
            answer, adapter, version = await self._read()
            if len(answer.body) > _LARGE_BYTES:
                reading, text = await asyncio.to_thread(self._translate, answer, adapter, version)
            else:
                reading, text = self._translate(answer, adapter, version)
        except ProbeError as error:
            failure = error
        stats = ProbeStats(
            self._prober.clock() - self._started, self._progress.body_bytes, self._progress.status
        )
        result = failure.reason if failure else "success"
        return Outcome(text + render_probe(stats, reading, failure), result, self._translate_s)

    async def _read(self) -> tuple[Answer, Adapter, EngineVersion]:
        try:
            async with asyncio.timeout(self._timeout_s):
                module, config = self._module, self._prober.config
                allow = config.allow if module.allow is None else module.allow
                address = await checked_address(self._target, allow, self._prober.resolve)
                adapters = ADAPTERS if module.adapter == AUTO else (BY_NAME[module.adapter],)
                answer = await self._prober.upstream.get(
                    self._target,
                    address,
                    adapters[0].metrics_path,
                    module,
                    module.max_body_bytes,
                    self._progress,
                )
                adapter, spelling = _recognise(answer.body, adapters)
                version = EngineVersion()
                if adapter.version_path and spelling not in adapter.versionless:
                    version = await self._version(address, adapter.version_path, answer.body)
                return answer, adapter, version
        except TimeoutError as error:
            raise ProbeError(names.REASON_TIMEOUT, f"no whole answer within {self._timeout_s:g} s") from error

    async def _version(self, address: Address, path: str, body: bytes) -> EngineVersion:
        start = _start_time(body)
        key = (self._target.scheme, self._target.authority, self._module_name, start or "")
        known = self._prober.known_version(key) if start else None
        if known is not None:
            return known
        left = self._timeout_s - (self._prober.clock() - self._started)
        try:
            async with asyncio.timeout(max(left, 0.0) * _VERSION_SHARE):
                answer = await self._prober.upstream.get(
                    self._target, address, path, self._module, _VERSION_BYTES, Progress()
                )
        except (ProbeError, TimeoutError):
            return EngineVersion()  # costs the label "version" only; the page itself was read
        version = _parse_version(answer.body)
        if start and version != EngineVersion():
            self._prober.remember(key, version)
        return version

    def _translate(self, answer: Answer, adapter: Adapter, version: EngineVersion) -> tuple[Reading, bytes]:
        begun = self._prober.clock()
        try:
            reading = translate(
                answer.body,
                adapter,
                self._prober.cache,
                version.version,
                self._module.max_series,
                openmetrics=answer.content_type.startswith("application/openmetrics-text"),
            )
            return reading, render_reading(reading, version)
        finally:
            self._translate_s = self._prober.clock() - begun


def _recognise(body: bytes, adapters: tuple[Adapter, ...]) -> tuple[Adapter, str]:
    for adapter in adapters:
        for spelling in spellings(body, adapter):
            return adapter, spelling
    tried = ", ".join(adapter.name for adapter in adapters)
    raise ProbeError(names.REASON_NO_ENGINE_METRICS, f"no sample of {tried} in {len(body)} bytes")


def _start_time(body: bytes) -> str | None:
    _, found, rest = body.partition(_START_TIME)
    return rest[:40].partition(b"\n")[0].decode("ascii", "replace") if found else None


def _parse_version(body: bytes) -> EngineVersion:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return EngineVersion()
    if not isinstance(document, dict):
        return EngineVersion()
    version = document.get("version")
    known = isinstance(version, str) and _VERSION_TEXT.match(version) is not None
    simulated = document.get("simulated") is True
    return EngineVersion(str(version), simulated) if known else EngineVersion(simulated=simulated)
