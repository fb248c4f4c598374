"""Dashboard variables and Grafana's own ($__rate_interval, …) -> plain PromQL."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Window:
    """The range of a page in Unix seconds, its step, and how often Prometheus scrapes, in seconds."""

    start: float
    end: float
    step_seconds: int
    scrape_seconds: int

    @property
    def rate_interval_seconds(self) -> int:
        """Grafana's $__rate_interval: a step and a scrape, never under four scrapes."""
        return max(self.step_seconds + self.scrape_seconds, 4 * self.scrape_seconds)


class VariableError(ValueError):
    """A query names a variable that the dashboard does not have."""


def window(start: float, end: float, scrape_seconds: int, points: int = 240) -> Window:
    """Return the window whose step gives about *points* points, aligned so that steps repeat exactly."""
    rough = max((end - start) / points, scrape_seconds)
    step = int(-(-rough // scrape_seconds) * scrape_seconds)
    return Window((start // step) * step, (end // step) * step, step, scrape_seconds)


def chosen(dashboard: Json, selection: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Variable name -> what stands in PromQL for it: `.*` or the variable's own for All, `(a|b)` for several.

    Raises VariableError when *selection* names no variable of the dashboard.
    """
    values: dict[str, str] = {}
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "datasource":
            continue
        picked = selection.get(variable["name"])
        values[variable["name"]] = _as_regex(picked) if picked else variable.get("allValue") or ".*"
    if unknown := set(selection) - set(values):
        raise VariableError(
            f"{dashboard['uid']} has no variable {', '.join(sorted(unknown))}; it has {', '.join(values) or 'none'}"
        )
    return values


def _as_regex(picked: Sequence[str]) -> str:
    """Values taken literally: escaped for the regular expression, then for the PromQL string around it."""
    escaped = [re.sub(r"([\\^$.|?*+()\[\]{}])", r"\\\1", one) for one in picked]
    pattern = escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"
    return pattern.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


_NAME = re.compile(r"\$(?:\{([A-Za-z_]\w*)(?::\w+)?\}|([A-Za-z_]\w*))")


def fill_in(expr: str, values: Mapping[str, str], view: Window) -> str:
    """Return *expr* with every variable replaced.

    Raises VariableError for a name that neither Grafana nor the dashboard defines.
    """
    own = {
        "__rate_interval": f"{view.rate_interval_seconds}s",
        "__interval": f"{view.step_seconds}s",
        "__range": f"{int(view.end - view.start)}s",
        "__range_s": f"{int(view.end - view.start)}",
    }

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name in own:
            return own[name]
        if name in values:
            return values[name]
        raise VariableError(f"the query {expr!r} uses ${name}, which the dashboard does not define")

    return _NAME.sub(value, expr)
