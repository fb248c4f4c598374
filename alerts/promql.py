"""How expressions are written: layout, ranges, bucket bounds in both spellings."""

import re

from slo.duration import format_seconds

_QUOTED = re.compile(r'"(?:[^"\\\\]|\\\\.)*"|`[^`]*`')


def promql(text: str) -> str:
    """Return an expression with each line indented by the brackets that are open there."""
    lines, depth = [], 0
    for line in filter(None, (raw.strip() for raw in text.splitlines())):
        plain = _QUOTED.sub("", line)
        closing = len(plain) - len(plain.lstrip(")}"))
        lines.append("  " * max(0, depth - closing) + line)
        depth += sum(plain.count(c) for c in "({") - sum(plain.count(c) for c in ")}")
    return "\n".join(lines)


def window(seconds: int) -> str:
    """Return a range like "[5m]"."""
    return f"[{format_seconds(seconds)}]"


def le_matcher(bound: float) -> str:
    """Return a matcher of the bucket bound in both spellings: 1 (Prometheus 2) and 1.0 (Prometheus 3)."""
    short, full = f"{bound:.15g}", repr(float(bound))
    if short == full:
        return f'le="{full}"'
    return f'le=~"{re.escape(short)}|{re.escape(full)}"'.replace("\\", "\\\\")
