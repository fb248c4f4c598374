"""Words of the command line -> which engines are watched."""

from dataclasses import replace
from urllib.parse import urlsplit

from inferwatch.stack.errors import StackError
from inferwatch.stack.settings import Settings
from inferwatch.stack.state import Selection, State
from slo import spec as slo_spec

DEFAULT_ENGINE = "sim"
OWN_ENGINES = ("sim", "vllm-cpu")


def choose(
    words: tuple[str, ...], service: str | None, settings: Settings, before: State, *, rag: bool = False
) -> Selection:
    """
    Return what to watch: the words given, else what the running stack watches, else the default engine.

    Raises StackError for a word that is neither an engine of ours nor an http(s) URL, and for a RAG service
    in front of somebody else's engine.
    """
    if not words and before.selection is not None:
        old = before.selection
        return _with_rag(Selection(old.engine, old.urls, service or old.service, old.rag), rag)
    service = service or slo_spec.load(settings.spec_path).services[0].id
    words = words or (DEFAULT_ENGINE,)
    if words[0] in OWN_ENGINES:
        if len(words) > 1:
            raise StackError(f"{words[0]} stands alone; leave out {' '.join(words[1:])}")
        return _with_rag(Selection(words[0], (settings.url("engine"),), service), rag)
    return _with_rag(Selection("urls", base_urls(words), service), rag)


def _with_rag(chosen: Selection, rag: bool) -> Selection:
    if rag and chosen.engine not in OWN_ENGINES:
        raise StackError(
            f"--rag starts the RAG service in front of {' or '.join(OWN_ENGINES)}; for an engine of yours run "
            "`python -m rag --engine URL --model NAME` yourself"
        )
    return replace(chosen, rag=rag or chosen.rag)


def base_urls(words: tuple[str, ...]) -> tuple[str, ...]:
    """Engines' URLs without a final slash; StackError for a word that is none or stands twice."""
    urls = tuple(_base_url(word) for word in words)
    if twice := {url for url in urls if urls.count(url) > 1}:
        raise StackError(f"{min(twice)} stands twice; name each engine once")
    return urls


def _base_url(word: str) -> str:
    parts = urlsplit(word)
    try:
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise StackError(
            f"{word!r} is neither {' nor '.join(OWN_ENGINES)} nor a URL like http://127.0.0.1:8000"
        )
    if parts.username or parts.query or parts.fragment or parts.path not in {"", "/"}:
        raise StackError(
            f"{word!r}: give scheme, host and port only; credentials go into the exporter's module files"
        )
    return f"{parts.scheme}://{parts.netloc}"
