"""One GET to a checked address, bounded in bytes: status, body and content type, or a ProbeError.

No redirects, no cookies, no proxy from the environment, no connection kept: a probe leaves nothing
behind. The caller bounds the time.
"""

import ssl
import zlib
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from yarl import URL

from exporters.engine.config import Module
from exporters.engine.probe_error import ProbeError
from exporters.engine.targets import Address, Target
from slo.names import engine as names

_HEADERS = {
    "Accept": "text/plain;version=0.0.4;q=1,*/*;q=0.1",  # never OpenMetrics: it rewrites vLLM's names
    "Accept-Encoding": "identity",
    "User-Agent": "inferwatch-engine-exporter",
}
_INFLATE = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
_CHUNK = 64 * 1024
_CONTEXTS_KEPT = 64


@dataclass(frozen=True)
class Answer:
    """A whole answer, decompressed."""

    status: int
    body: bytes
    content_type: str


@dataclass
class Progress:
    """What is known of an answer before it is whole, for a probe that fails half way."""

    status: int | None = None
    body_bytes: int = 0


class Upstream:
    """A client for engines; one for the life of the exporter. TLS contexts are kept per module's files."""

    def __init__(self) -> None:
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        )
        self._contexts: dict[tuple[object, ...], ssl.SSLContext] = {}

    async def close(self) -> None:
        """Close what is open."""
        await self._session.close()

    async def get(
        self, target: Target, address: Address, path: str, module: Module, limit: int, progress: Progress
    ) -> Answer:
        """GET `path` of `target` at `address`, at most `limit` bytes decompressed; raises ProbeError."""
        url = URL.build(scheme=target.scheme, host=str(address), port=target.port, path=path)
        headers = _HEADERS | {"Host": target.authority} | _authorization(module)
        secure = target.scheme == "https"
        try:
            async with self._session.get(
                url,
                headers=headers,
                allow_redirects=False,
                ssl=self._context(module) if secure else True,
                server_hostname=(module.server_name or target.host) if secure else None,
            ) as response:
                progress.status = response.status
                if response.status != 200:
                    raise ProbeError(
                        names.REASON_HTTP, f"{path} answered {response.status} {response.reason}"
                    )
                body = await _body(response, limit, progress)
                return Answer(response.status, body, response.headers.get("Content-Type", ""))
        except (aiohttp.ClientError, OSError, ValueError, zlib.error) as error:
            raise ProbeError(*_explain(error)) from error

    def _context(self, module: Module) -> ssl.SSLContext:
        files = (module.ca_file, module.cert_file, module.key_file)
        try:
            key = tuple((path, path.stat().st_mtime_ns) if path else None for path in files)
            context = self._contexts.get(key)
            if context is None:
                context = ssl.create_default_context(cafile=module.ca_file)
                if module.cert_file is not None:
                    context.load_cert_chain(module.cert_file, module.key_file)
                if len(self._contexts) >= _CONTEXTS_KEPT:
                    self._contexts.clear()
                self._contexts[key] = context
        except (OSError, ssl.SSLError) as error:
            raise ProbeError(names.REASON_CREDENTIALS, f"ca_file, cert_file or key_file: {error}") from error
        return context


def _authorization(module: Module) -> dict[str, str]:
    path = module.bearer_token_file
    if path is None:
        return {}
    return {"Authorization": f"Bearer {_token(path)}"}


def _token(path: Path) -> str:
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ProbeError(names.REASON_CREDENTIALS, f"bearer_token_file: {error}") from error
    if not token or not token.isprintable():
        raise ProbeError(names.REASON_CREDENTIALS, f"bearer_token_file {path}: empty, or more than one line")
    return token


async def _body(response: aiohttp.ClientResponse, limit: int, progress: Progress) -> bytes:
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "", *_INFLATE):
        raise ProbeError(names.REASON_MALFORMED, f"Content-Encoding {encoding!r}, which was not asked for")
    inflate = zlib.decompressobj(_INFLATE[encoding]) if encoding in _INFLATE else None
    chunks: list[bytes] = []
    async for chunk in response.content.iter_chunked(_CHUNK):
        data = chunk
        if inflate is not None:
            # one byte over the limit is enough to know, however much a small chunk would unpack to
            data = inflate.decompress(chunk, limit - progress.body_bytes + 1)
        progress.body_bytes += len(data)
        if progress.body_bytes > limit:
            raise ProbeError(names.REASON_TOO_LARGE, f"more than {limit} bytes")
        chunks.append(data)
    if inflate is not None and not inflate.eof:
        raise ProbeError(names.REASON_MALFORMED, f"the {encoding} body is cut off")
    return b"".join(chunks)


def _explain(error: Exception) -> tuple[str, str]:
    """The reason and a detail without our own checked address repeated."""
    detail = f"{type(error).__name__}: {error}"
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return names.REASON_TLS, detail
    if isinstance(error, aiohttp.ClientPayloadError | zlib.error):
        return names.REASON_MALFORMED, f"the body is cut off or damaged: {detail}"
    if isinstance(error, ConnectionRefusedError) or (
        isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, ConnectionRefusedError)
    ):
        return names.REASON_REFUSED, detail
    if isinstance(error, aiohttp.ClientResponseError | ValueError):
        return names.REASON_HTTP, f"the answer is not HTTP: {detail}"
    return names.REASON_UNREACHABLE, detail
