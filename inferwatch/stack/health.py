"""The state on disk and what answers -> the condition of each service, of the engines and of the alerts."""

from dataclasses import asdict, dataclass
from typing import Any

from inferwatch.promapi import Alert, Alertmanager, PromError, Prometheus
from inferwatch.promapi.transport import Transport
from inferwatch.stack import processes, receiver
from inferwatch.stack.settings import Settings
from inferwatch.stack.state import Record, State
from slo.names import alerts as alert_names
from slo.names import engine as names
from slo.names import records

READY, SILENT, ENDED = "ready", "not answering", "ended"
UP, UNKNOWN = "up", "unknown"
HANGS, ASLEEP = "hangs", "asleep"
LAST_NOTIFICATIONS = 5


@dataclass(frozen=True)
class ServiceHealth:
    """One service: *state* is ready, not answering (its process lives), or ended."""

    name: str
    state: str
    url: str
    pid: int
    log: str


@dataclass(frozen=True)
class EngineHealth:
    """One engine as Prometheus last saw it: *state* is up, hangs, asleep, why the probe failed, or unknown."""

    url: str
    state: str


@dataclass(frozen=True)
class Status:
    """
    The whole stack.

    Attributes:
        firing: alerts that Alertmanager holds, without the sign of life; None when it could not be asked.
        notifications: the last ones delivered, without the sign of life.
        sign_of_life: when the watchdog was last delivered, Unix seconds; None when it never was.
    """

    services: tuple[ServiceHealth, ...]
    engines: tuple[EngineHealth, ...]
    firing: tuple[Alert, ...] | None
    notifications: tuple[dict[str, Any], ...]
    sign_of_life: float | None

    @property
    def is_complete(self) -> bool:
        """Whether something runs and all of it is ready."""
        return bool(self.services) and all(service.state == READY for service in self.services)

    def as_json(self) -> dict[str, Any]:
        """For ``inferwatch status --json``."""
        return asdict(self)


def read(settings: Settings, state: State) -> Status:
    """Ask every service once; nothing that fails to answer stops the rest."""
    delivered = receiver.read(settings.notifications_file)
    services = tuple(_service(record) for record in state.records.values())
    ready = {service.name for service in services if service.state == READY}
    return Status(
        services=services,
        engines=engines(settings, state, can_ask="prometheus" in ready),
        firing=_firing(settings) if "alertmanager" in ready else None,
        notifications=tuple(entry for entry in delivered if not _is_watchdog(entry))[-LAST_NOTIFICATIONS:],
        sign_of_life=max((e[receiver.RECEIVED_AT] for e in delivered if _is_watchdog(e)), default=None),
    )


def _service(record: Record) -> ServiceHealth:
    state = ENDED
    if processes.find(record) is not None:
        with Transport(record.url, timeout_seconds=3.0) as client:
            state = READY if client.is_ready(record.ready_path) else SILENT
    return ServiceHealth(record.name, state, record.url, record.pid, record.log)


def engines(settings: Settings, state: State, *, can_ask: bool = True) -> tuple[EngineHealth, ...]:
    urls = state.selection.urls if state.selection else ()
    seen: dict[str, str] = {}
    if can_ask:
        with Prometheus(settings.url("prometheus"), timeout_seconds=3.0) as client:
            seen = _probe_states(client)
    return tuple(EngineHealth(url, seen.get(url, UNKNOWN)) for url in urls)


def _probe_states(client: Prometheus) -> dict[str, str]:
    try:
        success = client.query(names.PROBE_SUCCESS)
        reasons = client.query(f"{names.PROBE_FAILURE} == 1")
        sleeping = client.query(f"{names.ENGINE_SLEEPING} > 0")
        stuck = client.query(f"{records.INSTANCE_STUCK_REQUESTS} > 0")
    except PromError:
        return {}  # shown as unknown: what could not be read is neither up nor down
    why = {sample.labels["instance"]: sample.labels.get("reason", UNKNOWN) for sample in reasons}
    # A probe of an engine that sleeps or hangs succeeds; the hang is what must be acted on.
    answers = {sample.labels["instance"]: ASLEEP for sample in sleeping}
    answers |= {sample.labels["instance"]: HANGS for sample in stuck}
    return {
        engine: answers.get(engine, UP) if value == 1 else f"down ({why.get(engine, UNKNOWN)})"
        for engine, value in ((sample.labels["instance"], sample.value) for sample in success)
    }


def _is_watchdog(entry: dict[str, Any]) -> bool:
    return all(alert.get("labels", {}).get("alertname") == alert_names.WATCHDOG for alert in entry["alerts"])


def _firing(settings: Settings) -> tuple[Alert, ...] | None:
    with Alertmanager(settings.url("alertmanager"), timeout_seconds=3.0) as client:
        try:
            return tuple(alert for alert in client.alerts() if alert.name != alert_names.WATCHDOG)
        except PromError:
            return None  # shown as "cannot be asked"
