"""Early signals of slo.yaml -> records and warnings: what will break a promise next. Never pages.

A new signal is one entry in `SIGNALS`; its threshold, window and floor stand in slo.yaml.
"""

from collections.abc import Callable
from dataclasses import dataclass

from alerts.events import trusted
from alerts.promql import promql, window
from alerts.rule import Alert, Record
from alerts.scope import Scope
from alerts.texts import WHO, links, percent, span
from slo.names import alerts, engine, records
from slo.signals import Signal

Expression = Callable[[Scope, Signal], str]


@dataclass(frozen=True)
class SignalRule:
    """How a signal is computed: its record, and the traffic that its floor in slo.yaml is about."""

    signal_id: str
    alert: str
    record: str
    statistic: Expression
    happens: str
    traffic: Expression | None = None


def _moving(scope: Scope, signal: Signal, vector: str) -> str:
    """The largest by model, without engines that hung in the window: their gauges stood still, as their page says."""
    hung = f"max_over_time({scope.recorded(records.INSTANCE_STUCK_REQUESTS)}{window(signal.window)}) > 0"
    return f"max by (model) (\n{vector}\nunless on (instance) ({hung})\n)"


def _waiting(scope: Scope, signal: Signal) -> str:
    waiting = f"{scope.raw(engine.REQUESTS_WAITING)}{window(signal.window)}"
    return _moving(scope, signal, f"quantile_over_time(0.5, {waiting})")


def _rate(scope: Scope, metric: str, signal: Signal) -> str:
    rates = f"rate({scope.raw(metric)}{window(signal.window)})"
    return f"sum by (model) ({trusted(scope, rates)})"


def _queried(scope: Scope, signal: Signal) -> str:
    return _rate(scope, engine.PREFIX_CACHE_QUERIED_TOKENS_TOTAL, signal)


def _prefix_hit(scope: Scope, signal: Signal) -> str:
    hits = _rate(scope, engine.PREFIX_CACHE_HIT_TOKENS_TOTAL, signal)
    return f"{hits}\n/ ({_queried(scope, signal)} > 0)"


def _kv_usage(scope: Scope, signal: Signal) -> str:
    usage = f"{scope.raw(engine.KV_CACHE_USAGE_RATIO)}{window(signal.window)}"
    return _moving(scope, signal, f"avg_over_time({usage})")


def _preemptions(scope: Scope, signal: Signal) -> str:
    rate = f"rate({scope.raw(engine.PREEMPTIONS_TOTAL)}{window(signal.window)})"
    return f"max by (model) (sum by (instance, model) ({trusted(scope, rate)}))"


def _rejections(scope: Scope, signal: Signal) -> str:
    return _rate(scope, engine.ADMISSION_REJECTIONS_TOTAL, signal)


def _rejected(scope: Scope, signal: Signal) -> str:
    requests = f"max by (model) (avg_over_time({scope.recorded(records.REQUESTS)}{window(signal.window)}))"
    return f"{_rejections(scope, signal)}\n/ ({requests} > 0)"


def _began(scope: Scope, signal: Signal) -> str:
    return _rate(scope, engine.TIME_TO_FIRST_TOKEN_SECONDS + "_count", signal)


def _vanished(scope: Scope, signal: Signal) -> str:
    """What began and neither finished nor runs still; the engine counts client aborts nowhere.

    Nothing ran before an engine was there: one younger than the window is judged too.
    """
    running = scope.raw(engine.REQUESTS_RUNNING)
    now, before = (
        f"sum by (model) ({trusted(scope, gauge)})"
        for gauge in (running, f"{running} offset {signal.window}s")
    )
    return promql(f"""
        clamp_min(1 - (
          {_rate(scope, engine.REQUESTS_TOTAL, signal)}
          + ({now} - ({before} or {now} * 0)) / {signal.window}
        ) / ({_began(scope, signal)} > 0), 0)
    """)


SIGNALS = (
    SignalRule(
        "waiting-requests",
        alerts.WAITING_REQUESTS_HIGH,
        records.WAITING_MEDIAN,
        _waiting,
        "{{ $value | humanize }} requests wait",
    ),
    SignalRule(
        "prefix-cache-hit",
        alerts.PREFIX_CACHE_HIT_LOW,
        records.PREFIX_CACHE_HIT,
        _prefix_hit,
        "only {{ $value | humanizePercentage }} of prompt tokens come from the prefix cache",
        _queried,
    ),
    SignalRule(
        "kv-pressure",
        alerts.KV_CACHE_PRESSURE,
        records.KV_CACHE_USAGE,
        _kv_usage,
        "the KV cache is {{ $value | humanizePercentage }} full",
    ),
    SignalRule(
        "preemptions",
        alerts.PREEMPTION_STORM,
        records.PREEMPTIONS,
        _preemptions,
        "{{ $value | humanize }} requests a second are preempted",
    ),
    SignalRule(
        "admission-rejections",
        alerts.ADMISSION_REJECTIONS,
        records.ADMISSION_REJECTIONS,
        _rejected,
        "{{ $value | humanizePercentage }} of requests are turned away",
        _rejections,
    ),
    SignalRule(
        "clients-vanishing",
        alerts.CLIENTS_VANISHING,
        records.CLIENTS_VANISHED,
        _vanished,
        "{{ $value | humanizePercentage }} of requests begin and never finish",
        _began,
    ),
)


def signal_records(scope: Scope) -> tuple[Record, ...]:
    """Return the statistic of each signal and the token rates; for slow evaluation."""
    intervals = scope.spec.intervals
    tokens = window(intervals.slow_evaluation_seconds + intervals.scrape_seconds)
    return (
        *(
            Record(rule.record, rule.statistic(scope, scope.spec.signal(rule.signal_id)), scope.labels)
            for rule in SIGNALS
        ),
        *(
            Record(
                name, f"sum by (model) ({trusted(scope, f'rate({scope.raw(metric)}{tokens})')})", scope.labels
            )
            for name, metric in (
                (records.GENERATION_TOKENS, engine.GENERATION_TOKENS_TOTAL),
                (records.PROMPT_TOKENS, engine.PROMPT_TOKENS_TOTAL),
            )
        ),
    )


def signal_alerts(scope: Scope) -> tuple[Alert, ...]:
    """Return the early warnings; evaluated after the signals' records."""
    return tuple(_warning(scope, rule) for rule in SIGNALS)


def _warning(scope: Scope, rule: SignalRule) -> Alert:
    signal = scope.spec.signal(rule.signal_id)
    expr = f"{scope.recorded(rule.record)} {signal.condition} {signal.threshold:g}"
    ratio = signal.unit == "ratio"
    limit = percent(signal.threshold) if ratio else f"{signal.threshold:g} {signal.unit}"
    now = "{{ $value | humanizePercentage }}" if ratio else f"{{{{ $value | humanize }}}} {signal.unit}"
    side = "at most" if signal.condition == ">" else "at least"
    text = f"Now: {now}, {signal.statistic} over {span(signal.window)}. Wanted: {side} {limit}"
    if signal.floor and rule.traffic:
        expr += f"\nand on (model) {rule.traffic(scope, signal)} >= {signal.floor.per_second:g}"
        text += f", judged from {signal.floor.per_second:g} {signal.floor.what} per second on"
    if signal.judged_if:
        reached = f"max_over_time({scope.recorded(rule.record)}{window(signal.judged_if.lookback)})"
        expr += f"\nand {reached} >= {signal.judged_if.at_least:g}"
        text += f", where it reached {percent(signal.judged_if.at_least)} within {span(signal.judged_if.lookback)}"
    return Alert(
        rule.alert,
        expr,
        "warning",
        f"{WHO}: {rule.happens}",
        f"{text}. {signal.why} An early signal: no promise is broken by it alone.",
        for_seconds=signal.for_,
        labels=scope.labels,
        links=links(scope.spec, rule.alert, "engine"),
    )


def throughput_alerts(scope: Scope) -> tuple[Alert, ...]:
    """Return the throughput floor, where slo.yaml knows the service's GPUs; judged while requests wait."""
    floor = scope.service.throughput_floor
    if floor.tokens_per_second is None:
        return ()
    over = window(floor.window)
    tokens = f"sum by (service) (avg_over_time({scope.recorded(records.GENERATION_TOKENS)}{over}))"
    waiting = f"quantile_over_time(0.5, {scope.raw(engine.REQUESTS_WAITING)}{over})"
    return (
        Alert(
            alerts.THROUGHPUT_LOW,
            f"{tokens} < {floor.tokens_per_second:g}\nand on () (max({waiting}) >= 1)",
            "ticket",
            "{{ $labels.service }}: only {{ $value | humanize }} output tokens a second while requests wait",
            f"Now: {{{{ $value | humanize }}}} a second over {span(floor.window)}. Promised: "
            f"{floor.tokens_per_second:g} ({floor.gpus} × {floor.gpu_model}), judged while requests wait; idle time "
            "does not count.",
            for_seconds=floor.for_,
            labels=scope.labels,
            links=links(scope.spec, alerts.THROUGHPUT_LOW, "engine"),
        ),
    )
