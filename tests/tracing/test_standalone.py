"""The library alone, as another project would use it."""

import subprocess
import sys
from pathlib import Path

import pytest

from inferwatch.tracing import sdk

ROOT = Path(__file__).parents[2]

ALONE = """
import sys

class Wall:
    def find_spec(self, name, path=None, target=None):
        if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter", "aiohttp", "prometheus_client", "yaml")):
            raise ImportError(name)

sys.meta_path.insert(0, Wall())
from inferwatch import tracing

@tracing.stage("execute")
def work():
    return 7

with tracing.request("GET /", {"traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01"}):
    assert work() == 7
ours = {name for name in sys.modules if name.startswith("inferwatch.") and not name.startswith("inferwatch.tracing")}
assert not ours, ours
assert not {"slo", "rag", "exporters"} & set(sys.modules)
tracing.install("x", environ={})()
try:
    tracing.install("x", environ={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
except RuntimeError as error:
    print(error)
"""


def test_it_works_with_the_api_alone_and_names_what_an_export_needs():
    """No SDK, nothing else of ours: calls are no-ops, and only an export asks for the SDK, by name."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "install opentelemetry-sdk" in done.stdout


@pytest.mark.parametrize("name", sdk.ENDPOINT_VARIABLES)
def test_the_standard_variables_switch_the_export_on(name):
    """Either variable does; spans get to the endpoint named there."""
    code = f"""
import os, http.server, threading
got = []
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        got.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200); self.end_headers()
    def log_message(self, *words): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["{name}"] = f"http://127.0.0.1:{{server.server_port}}/v1/traces".removesuffix(
    "" if "TRACES" in "{name}" else "/v1/traces")
from inferwatch import tracing
end = tracing.install("shop", attributes={{"service.version": "3"}})
with tracing.request("GET /"): pass
end()
(path, body), = got
assert path == "/v1/traces", path
import gzip
body = gzip.decompress(body) if body[:2] == b"\\x1f\\x8b" else body
assert b"shop" in body and b"GET /" in body and b"service.version" in body
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
