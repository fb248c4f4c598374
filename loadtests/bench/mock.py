"""server.c -> a running truthful server on its own core, and after it what it truly sent."""

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_SOURCE = Path(__file__).with_name("server.c")


class BenchError(RuntimeError):
    """The benchmark cannot run here; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as the server saw it; stamps are CLOCK_MONOTONIC nanoseconds."""

    received_ns: int
    sent_ns: tuple[int, ...]

    @property
    def ttft_s(self) -> float:
        """Request read to first chunk handed to the kernel."""
        return (self.sent_ns[0] - self.received_ns) / 1e9

    @property
    def gaps_s(self) -> list[float]:
        """Between successive chunks."""
        return [(b - a) / 1e9 for a, b in zip(self.sent_ns, self.sent_ns[1:], strict=False)]


@dataclass
class Truth:
    """Filled when the server has ended: requests by id, and the CPU seconds the server took."""

    url: str
    certificate: Path | None = None
    requests: dict[str, Sent] = field(default_factory=dict)
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a server on 127.0.0.1 shows of itself; both files are PEM."""

    certificate: Path
    key: Path


def certificate(folder: Path) -> Certificate:
    """Sign a certificate for 127.0.0.1 with its own key, good for a day; raises BenchError without openssl."""
    folder.mkdir(parents=True, exist_ok=True)
    found = Certificate(folder / "certificate.pem", folder / "key.pem")
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-days", "1", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    words += ["-keyout", str(found.key), "-out", str(found.certificate)]
    try:
        subprocess.run(words, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise BenchError("no openssl on PATH; it makes the certificate that TLS is measured with") from None
    except subprocess.CalledProcessError as error:
        raise BenchError(f"openssl made no certificate: {error.stderr.strip()[-300:]}") from error
    return found


def build(folder: Path, *, tls: bool = False) -> Path:
    """Compile the server; raises BenchError when there is no C compiler, or for *tls* no OpenSSL to build against."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise BenchError("no C compiler (cc, gcc or clang) on PATH; the truthful server is written in C")
    binary = folder / ("server-tls" if tls else "server")
    words = [compiler, "-O2", "-o", str(binary), str(_SOURCE)]
    words += ["-DWITH_TLS", "-lssl", "-lcrypto"] if tls else []
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{compiler} cannot compile {_SOURCE.name}: {done.stderr.strip()[-500:]}")
    return binary


@contextlib.contextmanager
def serving(
    binary: Path, ttft_s: float, gap_s: float, core: int, shown: Certificate | None = None
) -> Iterator[Truth]:
    """Run the server on *core*, over TLS where it has something to show; the Truth is complete after the block."""
    log = binary.with_name("truth.jsonl")
    command = [str(binary), "0", str(round(ttft_s * 1e6)), str(round(gap_s * 1e6)), str(log)]
    command += [str(shown.certificate), str(shown.key)] if shown else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        os.sched_setaffinity(process.pid, {core})
        try:
            assert process.stdout is not None  # asked for above
            port = int(process.stdout.readline())
            truth = Truth(
                f"{'https' if shown else 'http'}://127.0.0.1:{port}", shown.certificate if shown else None
            )
            yield truth
        finally:
            process.terminate()
            process.wait()
    _read(log, truth)


def _read(log: Path, truth: Truth) -> None:
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            if "cpu_s" in entry:
                truth.cpu_s = entry["cpu_s"]
            else:
                truth.requests[entry["id"]] = Sent(entry["received_ns"], tuple(entry["sent_ns"]))
    log.unlink()
