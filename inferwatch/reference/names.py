"""slo/names/*.py -> every published metric and record with the note that stands beside it."""

import ast
import io
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path

PUBLISHED = re.compile(
    r"(?:llm|inferwatch)_[a-z0-9_]+|rag_[a-z0-9]+_[a-z0-9_]+|traces_span_metrics_[a-z0-9_]+|[a-z]+(?:_[a-z0-9]+)*:[a-z0-9_]+:[a-z0-9_]+|sloth_slo_info"
)


@dataclass(frozen=True)
class Name:
    """A constant of slo/names: the published *name*, and *note*: its comment or the text under it."""

    name: str
    note: str


def read(file: Path) -> list[Name]:
    """Published names of one file in its order; labels and other words are left out."""
    text = file.read_text(encoding="utf-8")
    comments = {
        token.start[0]: token.string.lstrip("# ").strip()
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and not token.line.lstrip().startswith("#")
    }
    body, found = ast.parse(text).body, []
    for at, node in enumerate(body):
        value = _value(node)
        if value is None or not PUBLISHED.fullmatch(value) or _target(node).startswith("LABEL_"):
            continue
        under = body[at + 1] if at + 1 < len(body) else None
        found.append(Name(value, comments.get(node.lineno, "") or _text(under)))
    return found


def _target(node: ast.stmt) -> str:
    """What the constant is called."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    return target.id if isinstance(target, ast.Name) else ""


def _value(node: ast.stmt) -> str | None:
    """The text that a constant is set to."""
    if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
        return node.value.value if isinstance(node.value.value, str) else None
    return None


def _text(node: ast.stmt | None) -> str:
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return " ".join(node.value.value.split())
    return ""
