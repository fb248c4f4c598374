"""`inferwatch drift fit`: files to a profile, and errors that say what to give."""

import io
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from exporters.drift.profile import load
from inferwatch.cli import main


def fitted(*words: str) -> tuple[int, str]:
    """Exit status and output of `inferwatch drift fit`."""
    result = CliRunner().invoke(main, ["drift", "fit", *words])
    return result.exit_code, result.output


def test_npy_and_jsonl_make_a_profile(tmp_path: Path) -> None:
    """300 vectors of each: model, version, dimension and count stand in the profile."""
    vectors = np.random.default_rng(1).standard_normal((600, 6)).astype(np.float32)
    np.save(tmp_path / "a.npy", vectors[:300])
    lines = "\n".join(json.dumps(row.tolist()) for row in vectors[300:])
    (tmp_path / "b.jsonl").write_text(lines + "\n")
    out = tmp_path / "deep" / "p.npz"
    code, said = fitted(
        str(tmp_path / "a.npy"),
        str(tmp_path / "b.jsonl"),
        "--model",
        "m",
        "--version",
        "2",
        "--out",
        str(out),
    )

    assert code == 0, said
    profile = load(out)
    assert (profile.model, profile.version, profile.dimension, profile.count) == ("m", "2", 6, 600)
    assert "600 vectors" in said


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("few.jsonl", "[1, 2]\n[2, 1]\n", "2 usable vectors"),
        ("bad.jsonl", "{", "cannot be read"),
        ("bad.npy", "no array", "cannot be read"),
    ],
)
def test_what_is_no_reference_is_refused(tmp_path: Path, name: str, content: str, says: str) -> None:
    """Too few vectors, or a file that is none: one message, exit status 1, no profile."""
    (tmp_path / name).write_text(content)
    code, said = fitted(str(tmp_path / name), "--model", "m", "--out", str(tmp_path / "p.npz"))

    assert code == 1
    assert says in said
    assert not (tmp_path / "p.npz").exists()


def test_either_files_or_a_window(tmp_path: Path) -> None:
    """Neither is an error that names both."""
    code, said = fitted("--model", "m", "--out", str(tmp_path / "p.npz"))

    assert code == 1
    assert "give either FILES or --from URL" in said


def test_a_window_of_nobody_says_so(tmp_path: Path) -> None:
    """Nothing listens there."""
    code, said = fitted("--from", "http://127.0.0.1:9", "--model", "m", "--out", str(tmp_path / "p.npz"))

    assert code == 1
    assert "does not answer" in said


def test_a_running_window_makes_a_profile(tmp_path: Path) -> None:
    """The exporter's ingest port is asked with the token and the stream's names; its npy is fitted."""
    asked: list[tuple[str, str]] = []
    body = io.BytesIO()
    np.save(body, np.random.default_rng(1).standard_normal((300, 4)).astype(np.float32))

    class Window(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body.getvalue())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    (tmp_path / "token").write_text("secret\n")
    with HTTPServer(("127.0.0.1", 0), Window) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        words = ("--from", url, "--token-file", str(tmp_path / "token"), "--model", "m", "--tenant", "t")
        code, said = fitted(*words, "--out", str(tmp_path / "p.npz"))
        thread.join(10)

    assert code == 0, said
    assert asked == [("/v1/window?model=m&version=&tenant=t", "Bearer secret")]
    assert load(tmp_path / "p.npz").count == 300
