"""docker-compose.yml -> one verdict a line: what was held against what, and what could not be."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from inferwatch.compose import cli, dockerfile, hardening, images, model, rehearsal, render, volumes, wiring
from inferwatch.compose.model import Project
from inferwatch.stack import binaries
from inferwatch.stack.errors import StackError
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings
from slo import spec as slo_spec
from slo.names import labels

FILE = "docker-compose.yml"
PROFILES = ("sim", "cpu", "gpu", "")
REHEARSED = "sim"
# A limit under this multiple of the measured peak is too tight, as too many published compose files show.
ROOM = 2.0
_JOB = re.compile(r'job(=~?)"([^"]+)"')
# The job of a part that a person adds: engines scraped without our exporter.
ADDED_JOBS = frozenset({labels.JOB_DIRECT})


@dataclass(frozen=True)
class Verdict:
    """*state*: ok, FAIL, or `not held` for what could not be tried here."""

    state: Literal["ok", "FAIL", "not held"]
    what: str
    text: str


@dataclass
class Context:
    """What the checks share; *seen* is filled by the rehearsal."""

    settings: Settings
    reporter: Reporter
    project: Project
    seen: dict[str, Any] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        """The checkout."""
        return self.settings.root


class NotHeld(Exception):
    """This machine cannot try it; the text says why."""


Check = Callable[[Context], tuple[str, list[str]]]


def command_line(context: Context) -> tuple[str, list[str]]:
    """Every profile is accepted by the real compose command line, schema included, and read as we read it."""
    try:
        words = cli.resolve(context.settings, context.reporter)
    except StackError as error:
        raise NotHeld(str(error)) from error
    found = []
    for profile in PROFILES:
        read, fault = cli.read(words, context.root / FILE, profile)
        if read is None:
            found.append(f"profile {profile or 'none'}: {fault}")
            continue
        found += _differences(context.project, read, profile)
    version = context.settings.pins().of("compose")
    return f"profiles sim, cpu, gpu and none accepted by docker compose {version} and its schema", found


def _differences(project: Project, read: dict[str, Any], profile: str) -> list[str]:
    """Our reading of the file decides all other checks, so it must be the command line's."""
    active = {s.name: s for s in project if not s.profiles or profile in s.profiles}
    found = (
        [] if set(read["services"]) == set(active) else [f"profile {profile}: other services than we read"]
    )
    for name, service in active.items():
        theirs = read["services"].get(name, {})
        mounts = {(m["source"], m["target"]) for m in theirs.get("volumes", ())}
        pairs = {
            "command": (tuple(theirs.get("command") or ()), service.words),
            "volumes": (mounts, {(m.source, m.target) for m in service.mounts}),
            "image": (theirs.get("image"), service.raw.get("image")),
            "mem_limit": (int(theirs.get("mem_limit", 0)), service.memory_bytes or 0),
        }
        found += [f"{name}.{key}: read as {a}, by us as {b}" for key, (a, b) in pairs.items() if a != b]
    return found


def hardened(context: Context) -> tuple[str, list[str]]:
    """Non-root, read-only, no capabilities, no new privileges, limits, log rotation."""
    count = len(context.project.services)
    text = f"{count} services: non-root, read-only, no capabilities, limits, log rotation; "
    return text + f"{len(hardening.ALLOWED)} listed exceptions", hardening.faults(context.project)


def pinned(context: Context) -> tuple[str, list[str]]:
    """Tags come from .env and do not move."""
    return "every pulled image has a version from .env", hardening.image_faults(context.project)


def mounts(context: Context) -> tuple[str, list[str]]:
    """Bound paths exist and can be read; each volume belongs to who writes it."""
    known = images.known(context.root / dockerfile.FILE)
    count = sum(len(s.mounts) for s in context.project)
    return f"{count} mounts: sources exist, users own what they write", volumes.faults(context.project, known)


def ports(context: Context) -> tuple[str, list[str]]:
    """Loopback only, each once, each listened on."""
    count = sum(len(s.ports) for s in context.project)
    return f"{count} published ports, all on 127.0.0.1 and listened on", wiring.port_faults(context.project)


def names(context: Context) -> tuple[str, list[str]]:
    """Every host:port in commands and mounted files is a service that listens there."""
    texts = wiring.read_texts(context.project)
    return f"targets in {len(texts)} commands and files", wiring.host_faults(context.project, texts)


def dependencies(context: Context) -> tuple[str, list[str]]:
    """What is waited for exists, can become healthy, and is started by the same profile."""
    count = sum(len(s.depends_on) for s in context.project)
    return f"{count} dependencies", wiring.dependency_faults(context.project)


def health(context: Context) -> tuple[str, list[str]]:
    """Health checks call what the image has and ask a port that is open."""
    known = images.known(context.root / dockerfile.FILE)
    count = sum(bool(s.health) for s in context.project)
    return f"{count} health checks against the images' programs", wiring.health_faults(context.project, known)


def jobs(context: Context) -> tuple[str, list[str]]:
    """Every job that a rule names is scraped."""
    config = yaml.safe_load((context.root / render.FILE).read_text(encoding="utf-8"))
    scraped = {job["job_name"] for job in config["scrape_configs"]}
    rules = "".join(p.read_text(encoding="utf-8") for p in (context.root / "alerts/rules").glob("*.yaml"))
    asked = {name for match in _JOB.finditer(rules) for name in match[2].split("|") if name}
    missing = sorted(asked - scraped - ADDED_JOBS)
    added = ", ".join(sorted((asked & ADDED_JOBS) - scraped)) or "none"
    return f"{len(asked)} jobs that rules name are scraped, but for those that a person adds: {added}", [
        f"job {name} is in rules and not scraped" for name in missing
    ]


def prometheus_file(context: Context) -> tuple[str, list[str]]:
    """The generated file is the spec's, and promtool accepts it."""
    if render.write(check=True, root=context.root):
        return "", [f"{render.FILE} is stale; run `inferwatch gen`"]
    promtool = binaries.resolve("promtool", context.settings, context.reporter)
    words = [str(promtool.path), "check", "config", "--syntax-only", str(context.root / render.FILE)]
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    fault = [] if answer.returncode == 0 else [answer.stderr.strip()]
    return f"{render.FILE} accepted by promtool {promtool.version}", fault


def image_build(context: Context) -> tuple[str, list[str]]:
    """What the Dockerfile copies is there and is enough; its installer is CI's."""
    return "what deploy/Dockerfile copies, starts and installs", dockerfile.faults(
        context.root, context.project
    )


def rehearse(context: Context) -> tuple[str, list[str]]:
    """Each command of profile sim runs natively with the containers' files, users, mounts and rights."""
    if why := rehearsal.is_possible():
        raise NotHeld(why)
    found = {}
    for programs in rehearsal.PROGRAMS.values():
        for program in programs:
            tool = Path(program).name
            found[program] = binaries.resolve(tool, context.settings, context.reporter).path
    words = [sys.executable, "-m", "inferwatch.compose.rehearsal", str(context.root), REHEARSED]
    with context.reporter.task("running the containers' commands natively"):
        answer = subprocess.run(
            ["unshare", "--net", "--mount", *words, *(f"{k}={v}" for k, v in found.items())],
            capture_output=True,
            text=True,
            check=False,
            cwd=context.root,
        )
    if answer.returncode != 0:
        return "", [answer.stderr.strip()[-1500:]]
    seen = context.seen
    seen.update(json.loads(answer.stdout))
    faults = [f"rule fails: {rule}" for rule in seen["rules_failing"]]
    if seen["targets_up"] != seen["targets"]:
        faults.append(f"only {seen['targets_up']} of {seen['targets']} targets are up")
    if not seen["notifications"]:
        faults.append("no notification reached the receiver")
    text = (
        f"{len(seen['ran'])} containers' commands ran natively as their users, read-only, without capabilities; "
        f"{seen['targets_up']} targets up, {seen['rules']} rules healthy, a notification delivered"
    )
    return text, faults


def memory(context: Context) -> tuple[str, list[str]]:
    """Each limit is twice what was measured in the rehearsal."""
    peaks: dict[str, int] = context.seen.get("peak_bytes", {})
    if not peaks:
        raise NotHeld("measured by the rehearsal, which did not run")
    found = []
    for name, peak in peaks.items():
        service = context.project.service(name)
        limit = (service.memory_bytes if service else 0) or 0
        if limit < ROOM * peak:
            found.append(f"{name}: limit {limit >> 20} MiB, measured {peak >> 20} MiB; allow twice that")
    shown = ", ".join(f"{name} {peak >> 20}" for name, peak in sorted(peaks.items()))
    return f"limits are at least {ROOM:g} × the measured peak (MiB): {shown}", found


CHECKS: tuple[tuple[str, Check], ...] = (
    ("command line", command_line),
    ("hardening", hardened),
    ("images", pinned),
    ("mounts", mounts),
    ("ports", ports),
    ("names", names),
    ("dependencies", dependencies),
    ("health checks", health),
    ("jobs", jobs),
    ("prometheus.yml", prometheus_file),
    ("Dockerfile", image_build),
    ("rehearsal", rehearse),
    ("memory", memory),
)

NEVER_HELD: tuple[tuple[str, str], ...] = (
    (
        "container engine",
        "nothing was built, pulled or run in one: image tags, builds and networks are untried",
    ),
    ("Grafana", "its start is untried; as its user, its password, provisioning and dashboards were read"),
    ("profile gpu", "the NVIDIA runtime, the CUDA engine and the node agent in a container are untried"),
    ("profile cpu", "the image is untried; its engine is the launcher's, which CI starts natively"),
)


def run_all(settings: Settings, reporter: Reporter) -> list[Verdict]:
    """Every check on its own, then what no check here can hold."""
    context = Context(settings, reporter, model.load(settings.root / FILE))
    verdicts = []
    for what, check in CHECKS:
        try:
            text, faults = check(context)
        except NotHeld as reason:
            verdicts.append(Verdict("not held", what, str(reason)))
        except (StackError, slo_spec.SpecError, OSError) as error:
            verdicts.append(Verdict("FAIL", what, str(error)))
        else:
            verdicts.append(
                Verdict("FAIL", what, "\n    ".join(faults)) if faults else Verdict("ok", what, text)
            )
    digests = ", ".join(hardening.without_digest(context.project))
    untried = (*NEVER_HELD, ("digests", f"pinned by tag, not by digest: {digests}"))
    return [*verdicts, *(Verdict("not held", what, why) for what, why in untried)]
