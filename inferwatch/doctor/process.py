"""A loopback URL -> the server process behind it and the flags that it was started with."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import psutil

LOOPBACK = ("127.0.0.1", "localhost", "::1")
ENTRY_POINTS = ("vllm", "vllm.entrypoints.openai.api_server")


@dataclass(frozen=True)
class ServerProcess:
    """The server: its pid, its flags without dashes in front (`_` written as `-`), and the model word."""

    pid: int
    flags: Mapping[str, str]
    model: str
    command: str


def find(url: str) -> ServerProcess | None:
    """The server that listens behind *url* on this host; None for another host or another user's process."""
    parts = urlsplit(url)
    if parts.hostname not in LOOPBACK or parts.port is None:
        return None
    try:
        pids = [
            c.pid
            for c in psutil.net_connections("tcp")
            if c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == parts.port and c.pid
        ]
    except psutil.AccessDenied:
        return None
    for pid in pids:
        if (found := _server(pid)) is not None:
            return found
    return None


def _server(pid: int) -> ServerProcess | None:
    """The process or the ancestor whose command line is a vLLM server's; workers rename themselves."""
    try:
        process = psutil.Process(pid)
        for candidate in (process, *process.parents()):
            words = candidate.cmdline()
            if (parsed := parse(words)) is not None:
                return ServerProcess(candidate.pid, parsed[0], parsed[1], shlex.join(words))
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None
    return None


def parse(words: Sequence[str]) -> tuple[dict[str, str], str] | None:
    """Flags and model of a server's command line, None when it is none: `--a 1 --b=2 --no-c -d`."""
    at = next((i for i, w in enumerate(words[:4]) if w.rpartition("/")[2] in ENTRY_POINTS), None)
    if at is None:
        return None
    rest = list(words[at + 1 :])
    if words[at].rpartition("/")[2] == "vllm":
        if rest[:1] != ["serve"]:
            return None
        rest = rest[1:]
    flags: dict[str, str] = {}
    model, i = "", 0
    while i < len(rest):
        word = rest[i]
        i += 1
        if not word.startswith("-"):
            model = model or word
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if not equals and i < len(rest) and not rest[i].startswith("--"):
            value, i = rest[i], i + 1
        flags[name.replace("_", "-")] = value
    return flags, flags.get("model", model)
