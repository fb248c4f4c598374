"""Rules of anyone -> faults that Prometheus accepts and that leave an alert dead, doubled or false.

Works on parsed rule files (`{"groups": [...]}`), so that it judges hand-written rules too.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from alerts.expressions import limits, metric_names, range_calls

RATIO_ENDINGS = ("_ratio", "_perc", "_usage", ":ratio")
RATES = ("rate", "irate", "increase", "delta", "deriv", "idelta")
SAMPLES_WANTED = 4


def rules(content: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (name, rule) of every rule of a parsed rule file."""
    for group in content.get("groups") or ():
        for rule in group.get("rules") or ():
            yield str(rule.get("alert") or rule.get("record")), rule


def faults(content: Mapping[str, Any], scrape_seconds: Mapping[str, int]) -> list[str]:
    """Return a line a fault; *scrape_seconds* is job -> interval, "" the default of jobs not named."""
    found: list[str] = []
    for name, rule in rules(content):
        expression = str(rule["expr"])
        found += [f"{name}: {fault}" for fault in _ratio_limits(expression)]
        found += [f"{name}: {fault}" for fault in _short_windows(expression, scrape_seconds)]
        found += [f"{name}: {fault}" for fault in _rates_of_sums(expression)]
        found += [f"{name}: {fault}" for fault in _changing_labels(rule)]
        found += [f"{name}: {fault}" for fault in _missing_texts(rule)]
    return found


def _ratio_limits(expression: str) -> Iterator[str]:
    names = metric_names(expression)
    if names and all(name.endswith(RATIO_ENDINGS) for name in names):
        for limit in limits(expression):
            if not 0 <= limit <= 1:
                yield f"compares {', '.join(sorted(names))}, a ratio of 0 to 1, with {limit:g}; write 90 % as 0.9"


def _short_windows(expression: str, scrape_seconds: Mapping[str, int]) -> Iterator[str]:
    for call in range_calls(expression):
        if call.function not in RATES:
            continue
        jobs = [job for job in scrape_seconds if job and f'job="{job}"' in call.matchers]
        slowest = max((scrape_seconds[job] for job in jobs or scrape_seconds), default=0)
        if call.seconds < SAMPLES_WANTED * slowest:
            yield (
                f"{call.function} of {call.metric} over {call.seconds} s with a scrape every {slowest} s holds too "
                f"few samples; take at least {SAMPLES_WANTED * slowest} s, or name the job"
            )


def _rates_of_sums(expression: str) -> Iterator[str]:
    for call in range_calls(expression):
        if call.function in ("rate", "irate", "increase") and call.metric.startswith(
            ("sum:", "job:", "model:")
        ):
            yield f"{call.function} of {call.metric}: a restart hides in the sum and looks like traffic; rate first"


def _changing_labels(rule: Mapping[str, Any]) -> Iterator[str]:
    for label, value in (rule.get("labels") or {}).items():
        if "$value" in str(value) or ".Value" in str(value):
            yield f"label {label} holds the value: every evaluation makes another alert; put it into an annotation"


def _missing_texts(rule: Mapping[str, Any]) -> Iterator[str]:
    if "alert" in rule and "severity" not in (rule.get("labels") or {}):
        yield "has no label severity and is routed nowhere in particular; add one"


def dangling(content: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    """Return the metrics that rules read and nobody provides; an alert on them is silent for ever.

    *known*: names that exporters expose. What the rules record themselves is known too.
    """
    provided = set(known) | {str(rule["record"]) for _, rule in rules(content) if "record" in rule}
    read = {name for _, rule in rules(content) for name in metric_names(str(rule["expr"]))}
    return sorted(read - provided)
