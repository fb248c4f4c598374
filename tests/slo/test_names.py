"""Names that we publish stand once, under slo/names."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import slo.names

ROOT = Path(__file__).resolve().parents[2]
# `sim` speaks vLLM's names and imports nothing of ours.
PACKAGES = ["slo", "exporters", "alerts", "dashboards", "loadtests", "diagnosis", "rag", "inferwatch"]
OURS = re.compile(r"\b((?:llm|rag|traces_span)_[a-z0-9]+_[a-z0-9_]+|slo:[a-z_]+:[a-z0-9_]+)\b")


def _docstrings(tree: ast.Module) -> set[int]:
    """Ids of the constants that are documentation: docstrings and strings standing alone."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def strays_in(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of each published name typed as a literal."""
    tree = ast.parse(source)
    documentation = _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            for name in OURS.findall(node.value):
                yield node.lineno, name


def test_no_published_name_is_typed_outside_slo_names() -> None:
    """A metric or record name typed elsewhere would go on living after a rename."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if not path.is_relative_to(ROOT / "slo" / "names")
        for line, name in strays_in(path.read_text(encoding="utf-8"))
    ]

    assert found == []


def test_the_search_finds_a_stray() -> None:
    """A name in an f-string is found; the same name in a docstring is not."""
    source = '"""llm_requests_running"""\nQUERY = f"sum(llm_requests_running{{}})"\n'

    assert list(strays_in(source)) == [(2, "llm_requests_running")]


def test_each_name_stands_once() -> None:
    """No two constants of slo/names carry the same metric name."""
    seen: dict[str, str] = {}
    for module_info in pkgutil.iter_modules(slo.names.__path__):
        module = importlib.import_module(f"slo.names.{module_info.name}")
        for constant, value in vars(module).items():
            if constant.isupper() and isinstance(value, str) and OURS.fullmatch(value):
                where = f"{module_info.name}.{constant}"
                assert value not in seen, f"{value} stands in {seen[value]} and {where}"
                seen[value] = where
    assert seen
