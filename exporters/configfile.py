"""A YAML file to a validated model, or one error that names file, key path, value and mend."""

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

Model = TypeVar("Model", bound=BaseModel)

_SECRET_KEYS = frozenset({"basic_auth_users"})  # values under these are never printed
_SHOWN_CHARACTERS = 120


class ConfigError(ValueError):
    """A configuration that cannot be used; the text names file, key path, value and mend."""


class _UniqueLoader(yaml.SafeLoader):
    """SafeLoader that refuses a key written twice, which YAML readers else resolve by chance."""


def _unique_mapping(loader: _UniqueLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if str(key.value) in seen:
            raise yaml.MarkedYAMLError(
                problem=f"key {key.value!r} stands twice; keep one of them", problem_mark=key.start_mark
            )
        seen.add(str(key.value))
    return loader.construct_mapping(node, deep=True)


_UniqueLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping)


def load(path: Path, model: type[Model]) -> Model:
    """Read `path` (YAML) into `model`; raises ConfigError with one line for each fault."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueLoader)
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read ({error.strerror}); give the path of a readable file"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 ({error}); save it as UTF-8") from error
    except yaml.MarkedYAMLError as error:
        where = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{path}{where}: not YAML: {error.problem}") from error
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: holds a {type(document).__name__}, not keys; write `key: value` lines")
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise ConfigError("\n".join(_line(path, one) for one in error.errors())) from error


def _line(path: Path, error: ErrorDetails) -> str:
    where = ""
    for part in error["loc"]:
        where += f"[{part}]" if isinstance(part, int) else f".{part}"
    where = where.lstrip(".") or "(top level)"
    value = repr(error["input"])
    if _SECRET_KEYS.intersection(error["loc"]):
        value = "hidden"
    elif len(value) > _SHOWN_CHARACTERS:
        value = value[:_SHOWN_CHARACTERS] + "…"
    if error["type"] == "extra_forbidden":
        return f"{path}: {where}: unknown key (value {value}); remove it or mend its spelling"
    if error["type"] == "missing":
        return f"{path}: {where}: missing; add it"
    return f"{path}: {where}: {error['msg'].removeprefix('Value error, ')} (value {value})"
