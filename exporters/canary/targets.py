"""Prometheus file_sd JSON -> canary targets; the file is read again whenever it changes."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path

LOG = logging.getLogger(__name__)

_META = "__"
_OWN_LABELS = frozenset({"result", "code", "le"})


class TargetsError(ValueError):
    """The targets file cannot be used; the text names file, place, value and mend."""


@dataclass(frozen=True)
class Target:
    """One engine: its address and labels exactly as Prometheus has them, its module and scheme.

    `labels` hold `instance` (the address, unless the file sets it) and never `job`: that is the canary's own.
    """

    address: str
    labels: tuple[tuple[str, str], ...] = ()
    module: str | None = None
    scheme: str = "http"

    @property
    def base_url(self) -> str:
        """Scheme, host and port, with no slash at the end."""
        url = self.address if "://" in self.address else f"{self.scheme}://{self.address}"
        return url.rstrip("/")


def parse_targets(text: str, source: str) -> tuple[Target, ...]:
    """Read file_sd JSON (a list of groups with `targets` and `labels`).

    `__scheme__` and `__param_module` are understood, other labels that begin with `__` are left out.
    Raises TargetsError.
    """
    try:
        groups = json.loads(text)
    except ValueError as error:
        raise TargetsError(
            f"{source}: not valid JSON ({error}); write the whole file, then rename it"
        ) from None
    if not isinstance(groups, list):
        raise TargetsError(f"{source}: top level: {type(groups).__name__}; make it a list of target groups")
    found: dict[str, Target] = {}
    for number, group in enumerate(groups):
        for target in _group(group, f"{source}: [{number}]"):
            if found.setdefault(target.address, target) != target:
                raise TargetsError(
                    f"{source}: [{number}].targets: {target.address!r} stands twice with different labels; "
                    "keep one, an engine is asked once"
                )
    return tuple(found.values())


def _group(group: object, place: str) -> list[Target]:
    if not isinstance(group, dict):
        raise TargetsError(f"{place}: {group!r}; a group is an object with targets and labels")
    if unknown := sorted(set(group) - {"targets", "labels"}):
        raise TargetsError(f"{place}.{unknown[0]}: unknown key; a group has only targets and labels")
    addresses, labels = group.get("targets"), group.get("labels") or {}
    if not isinstance(addresses, list):
        raise TargetsError(f"{place}.targets: {addresses!r}; make it a list of host:port")
    if not isinstance(labels, dict):
        raise TargetsError(f"{place}.labels: {labels!r}; make it an object of strings")
    for name, value in labels.items():
        if not isinstance(value, str):
            raise TargetsError(f"{place}.labels.{name}: {value!r}; put the value in quotes")
        if name in _OWN_LABELS:
            raise TargetsError(f"{place}.labels.{name}: {value!r}; the canary sets it itself, remove it")
    public = {n: v for n, v in labels.items() if not n.startswith(_META) and n != "job" and v}
    module, scheme = labels.get("__param_module"), labels.get("__scheme__", "http")
    targets = []
    for address in addresses:
        if not isinstance(address, str) or not address.strip():
            raise TargetsError(f"{place}.targets: {address!r}; write it like 127.0.0.1:8000")
        shown = tuple(sorted({"instance": address, **public}.items()))
        targets.append(Target(address, shown, module, scheme))
    return targets


class TargetsFile:
    """The file as last understood; a bad file keeps the targets of the last good one.

    `errors`: how often a changed file could not be used. `valid`: None before the first reading.
    `loaded`: whether it was good once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.targets: tuple[Target, ...] = ()
        self.errors = 0
        self.valid: bool | None = None
        self.loaded = False
        self._seen: tuple[int, ...] | None = None

    def refresh(self) -> bool:
        """Read the file if it changed since the last look; return whether the targets changed."""
        seen = self._fingerprint()
        if self.valid is not None and seen == self._seen:
            return False
        self._seen = seen
        try:
            targets = parse_targets(self._text(), str(self.path))
        except TargetsError as error:
            self.errors += 1
            self.valid = False
            LOG.error("%s; still asking the %d targets known before", error, len(self.targets))
            return False
        if self.valid is False:
            LOG.info("%s: usable again, %d targets", self.path, len(targets))
        self.valid = self.loaded = True
        changed = targets != self.targets
        self.targets = targets
        return changed

    def _fingerprint(self) -> tuple[int, ...] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return (status.st_mtime_ns, status.st_size, status.st_ino)

    def _text(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise TargetsError(
                f"{self.path}: cannot be read ({error}); give the file_sd JSON that Prometheus reads"
            ) from None
