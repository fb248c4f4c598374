"""The exporter toolkit's web configuration: TLS, client certificates, basic auth, headers, and its faults."""

import base64
import ssl

import aiohttp
import bcrypt
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from prometheus_client import CollectorRegistry

from exporters.configfile import ConfigError
from exporters.web import own_routes, secure
from exporters.webconfig import load_web_config, tls_context

HASH = bcrypt.hashpw(b"open sesame", bcrypt.gensalt(4)).decode()


@pytest.fixture
def folder(tmp_path, certificate):
    """A folder with a server's and a client's certificate."""
    certificate(tmp_path, "server")
    certificate(tmp_path, "client")
    return tmp_path


def write(folder, text):
    """A web configuration file."""
    path = folder / "web.yml"
    path.write_text(text)
    return path


def app(config):
    """Own endpoints behind the configuration."""
    made = web.Application()
    made.add_routes(own_routes(CollectorRegistry(), lambda: True))
    secure(made, config)
    return made


def login(user, password):
    """The header of basic auth."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


async def status(url, **kwargs):
    """Status and headers of one GET."""
    async with aiohttp.ClientSession() as session, session.get(url, **kwargs) as response:
        return response.status, response.headers


async def test_basic_auth_guards_every_path(tmp_path):
    """Right password 200, twice (the second from memory); wrong, unknown, malformed or none 401."""
    config = load_web_config(write(tmp_path, f"basic_auth_users: {{prom: '{HASH}'}}"))
    async with TestServer(app(config)) as server:
        url = str(server.make_url("/-/healthy"))
        right = login("prom", "open sesame")
        assert (await status(url, headers=right))[0] == 200
        assert (await status(url, headers=right))[0] == 200
        for wrong in (("prom", "wrong"), ("nobody", "open sesame"), ("prom", "x" * 100), ("prom", "a\0b")):
            got, headers = await status(url, headers=login(*wrong))
            assert got == 401
            assert headers["WWW-Authenticate"].startswith("Basic")
        for header in ("", "Bearer x", "Basic", "Basic !!!", "Basic cHJvbQ==", "Basic \xe9\xff"):
            assert (await status(url, headers={"Authorization": header}))[0] == 401
        assert (await status(str(server.make_url("/metrics"))))[0] == 401


async def test_hashes_as_htpasswd_writes_them(tmp_path):
    """$2y$ is the same algorithm under another name."""
    hashed = HASH.replace("$2b$", "$2y$")
    config = load_web_config(write(tmp_path, f"basic_auth_users: {{prom: '{hashed}'}}"))
    async with TestServer(app(config)) as server:
        url = str(server.make_url("/-/ready"))
        assert (await status(url, headers=login("prom", "open sesame")))[0] == 200


async def test_headers_are_added_to_every_answer(tmp_path):
    """As the file states them."""
    config = load_web_config(write(tmp_path, "http_server_config: {headers: {X-Frame-Options: deny}}"))
    async with TestServer(app(config)) as server:
        got, headers = await status(str(server.make_url("/-/healthy")))
    assert (got, headers["X-Frame-Options"]) == (200, "deny")


async def test_tls_with_a_client_certificate(folder):
    """Without the client's certificate there is no answer; with it there is."""
    path = write(
        folder,
        "tls_server_config: {cert_file: server.pem, key_file: server-key.pem, client_ca_file: client.pem, "
        "client_auth_type: RequireAndVerifyClientCert, min_version: TLS13}",
    )
    config = load_web_config(path)
    server = TestServer(app(config), host="localhost")
    await server.start_server(ssl=tls_context(config))
    try:
        trusting = ssl.create_default_context(cafile=folder / "server.pem")
        with pytest.raises((aiohttp.ClientError, OSError)):
            await status(str(server.make_url("/-/healthy")), ssl=trusting)
        trusting.load_cert_chain(folder / "client.pem", folder / "client-key.pem")
        assert (await status(str(server.make_url("/-/healthy")), ssl=trusting))[0] == 200
    finally:
        await server.close()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("tls_server_config: {cert_file: server.pem}", ["tls_server_config.key_file: missing"]),
        (
            "tls_server_config: {cert_file: no.pem, key_file: server-key.pem}",
            ["no.pem", "give readable PEM files"],
        ),
        (
            "tls_server_config: {cert_file: server.pem, key_file: client-key.pem}",
            ["server.pem", "readable PEM"],
        ),
        (
            "tls_server_config: {cert_file: server.pem, key_file: server-key.pem, cipher_suites: [X]}",
            ["tls_server_config.cipher_suites: unknown key"],
        ),
        (
            "tls_server_config: {cert_file: server.pem, key_file: server-key.pem, client_auth_type: RequireAnyClientCert}",
            ["client_auth_type", "'RequireAnyClientCert'"],
        ),
        (
            "tls_server_config: {cert_file: server.pem, key_file: server-key.pem, "
            "client_auth_type: RequireAndVerifyClientCert}",
            ["needs client_ca_file"],
        ),
        (
            "tls_server_config: {cert_file: server.pem, key_file: server-key.pem, min_version: TLS13, max_version: TLS12}",
            ["min_version", "swap them"],
        ),
        ("basic_auth_users: {a: plaintext}", ["basic_auth_users", "htpasswd -nBC 10 a"]),
        ('http_server_config: {headers: {A: "b\\nc"}}', ["http_server_config.headers", "one line"]),
        ("folder: /x", ["folder: unknown key"]),
    ],
)
def test_each_fault_says_what_to_mend(folder, text, parts):
    """Key, value and mend; a password is never printed."""
    with pytest.raises(ConfigError) as caught:
        load_web_config(write(folder, text))
    for part in parts:
        assert part in str(caught.value)
    assert "plaintext" not in str(caught.value)
