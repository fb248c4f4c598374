"""Where the canary may go, and with what."""

import datetime
import ipaddress
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from exporters.canary.access import Access, NotAsked, accessor, tls_contexts
from exporters.canary.request import Asker
from exporters.canary.server import client_session
from exporters.canary.targets import Target
from exporters.configfile import ConfigError
from exporters.engine.config import Config

LOOPBACK = {"scheme": "http", "host": "127.0.0.0/8", "ports": ["1-65535"]}


def config(allow: list[dict[str, Any]] | None = None, **module: Any) -> Config:
    """A configuration with one more module, `other`."""
    modules = {"default": {}, "other": module}
    return Config.model_validate({"allow": [LOOPBACK] if allow is None else allow, "modules": modules})


def reach(target: Target, settings: Config, *answers: str) -> Awaitable[Access]:
    """Ask once how *target* is reached; names resolve to *answers*."""

    async def resolve(host: str, port: int) -> list[str]:
        assert host
        return list(answers)

    return accessor(target, settings, tls_contexts(settings), resolve)()


async def test_an_allowed_address_is_reached_as_it_stands() -> None:
    """No token, no TLS name, the address itself."""
    access = await reach(Target("127.0.0.1:8000"), config())
    assert access.base_url == "http://127.0.0.1:8000"
    assert access.headers == {"Host": "127.0.0.1:8000"}
    assert access.server_name is None


async def test_the_address_checked_is_the_one_connected_to() -> None:
    """A name becomes the address that passed; the Host header still says the name."""
    named = [{"scheme": "http", "host": "engine.internal", "ports": [8000]}]
    access = await reach(Target("engine.internal:8000"), config(named), "10.1.2.3")
    assert access.base_url == "http://10.1.2.3:8000"
    assert access.headers["Host"] == "engine.internal:8000"
    in_six = await reach(Target("engine.internal:8000"), config(named), "fd00::5")
    assert in_six.base_url == "http://[fd00::5]:8000"


@pytest.mark.parametrize(
    ("target", "answers", "says"),
    [
        (Target("10.0.0.1:8000"), (), "add an entry to `allow`"),
        (Target("127.0.0.1:8000", scheme="https"), (), "with scheme https"),
        (Target("http://user:secret@127.0.0.1:8000"), (), "bearer_token_file"),
        (Target("engine.internal:8000"), ("169.254.169.254",), "link-local"),
        (Target("engine.internal:8000"), (), "no address"),
        (Target("127.0.0.1:8000", module="tls"), (), "module 'tls' is not in the configuration"),
    ],
)
async def test_what_is_not_allowed_is_not_asked(target: Target, answers: tuple[str, ...], says: str) -> None:
    """The text says what to change."""
    with pytest.raises(NotAsked, match=says):
        await reach(target, config(), *answers)


async def test_the_token_is_read_before_each_request(tmp_path: Path) -> None:
    """A rotated token is used at once; a file without one is named."""
    token = tmp_path / "token"
    access = accessor(
        Target("127.0.0.1:1", module="other"),
        config(bearer_token_file=token),
        {"other": ssl.create_default_context()},
    )
    with pytest.raises(NotAsked, match=r"token.*give a readable text file"):
        await access()
    token.write_text("one\n")
    assert (await access()).headers["Authorization"] == "Bearer one"
    token.write_text("two")
    assert (await access()).headers["Authorization"] == "Bearer two"
    token.write_text("two words")
    with pytest.raises(NotAsked, match="write just the token"):
        await access()


def test_unusable_tls_files_are_told_at_start(tmp_path: Path) -> None:
    """A missing CA is an error of the configuration, not of each request."""
    with pytest.raises(ConfigError, match=r"modules.other: ca_file .*nowhere.pem"):
        tls_contexts(config(ca_file=tmp_path / "nowhere.pem"))


def certificate(folder: Path) -> Path:
    """Write a certificate of engine.internal, valid for a day, with its key; return its path."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "engine.internal")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("engine.internal"), x509.IPAddress(ipaddress.ip_address("127.0.0.9"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "engine.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return path


async def test_an_engine_behind_tls_is_asked_under_its_own_name(
    start_engine: Callable[[], Awaitable[Any]], tmp_path: Path
) -> None:
    """With its CA and the name in its certificate the engine is reached by address; without, refused."""
    engine = await start_engine()
    pem = certificate(tmp_path)
    app = web.Application()
    app.router.add_get("/v1/models", engine.list_models)
    app.router.add_post("/v1/completions", engine.complete)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    target = Target(f"https://127.0.0.1:{runner.addresses[0][1]}", module="other")
    allow = [LOOPBACK | {"scheme": "https"}]
    trusting = config(allow, ca_file=pem, server_name="engine.internal")
    async with client_session() as session:
        asker = Asker(session, accessor(target, trusting, tls_contexts(trusting)), 5.0)
        assert (await asker.ask()).result == "ok"
        plain = config(allow)
        distrusting = Asker(session, accessor(target, plain, tls_contexts(plain)), 5.0)
        outcome = await distrusting.ask()
    assert outcome.result == "refused"
    assert "certificate" in outcome.detail.lower()
    await runner.cleanup()
