"""What the pages share: selectors from the variables, the variables themselves, events to mark."""

from grafanalib.core import Template

from dashboards.style import BLUE, GREEN, ORANGE, PURPLE, RED, Json, annotation, variable
from slo.names import engine, load

RATE = "$__rate_interval"
ENGINE = 'job=~"$job",service=~"$service",model=~"$model",instance=~"$instance"'
"""Matchers for raw engine series."""

SERVICE = 'service=~"$service",model=~"$model"'
"""Matchers for recorded series, which know services and models but no single instance."""

WHOLE_ENGINE = 'job=~"$job",service=~"$service",instance=~"$instance"'
"""Matchers for series that a failed probe still has: it cannot know the model."""

SOURCE_ENGINE = "the engine's /metrics through exporters/engine"
SOURCE_RULES = "recording rules of alerts/ over the engine's and the canary's series"


def of(metric: str, more: str = "", labels: str = ENGINE) -> str:
    """`metric{…}` with the page's variables, and *more* matchers in front."""
    return f"{metric}{{{more + ',' if more else ''}{labels}}}"


def recorded(record: str, more: str = "") -> str:
    """`record{…}` with the page's service and model."""
    return of(record, more, SERVICE)


def rate(metric: str, more: str = "", by: str = "") -> str:
    """Events per second of a counter, over the window Grafana finds trustworthy."""
    return f"sum{' by (' + by + ')' if by else ''} (rate({of(metric, more)}[{RATE}]))"


def buckets(histogram: str) -> str:
    """Observations per bucket and step: what a heatmap takes."""
    return f"sum by (le) (increase({of(histogram + '_bucket')}[{RATE}]))"


def quantile(q: float, histogram: str, by: str = "") -> str:
    """The quantile *q* of a histogram over the trustworthy window, in its own unit."""
    labels = f"le,{by}" if by else "le"
    return f"histogram_quantile({q}, sum by ({labels}) (rate({of(histogram + '_bucket')}[{RATE}])))"


def mean(histogram: str, by: str = "") -> str:
    """The mean of a histogram over the trustworthy window."""
    return f"{rate(histogram + '_sum', by=by)} / {rate(histogram + '_count', by=by)}"


def variables(of_metric: str = engine.PROBE_SUCCESS, *, with_model: bool = True) -> list[Template]:
    """Job, service, model and instance, each narrowed by those before it."""
    chosen = [
        variable("job", "Job", f"label_values({of_metric}, job)"),
        variable("service", "Service", f'label_values({of_metric}{{job=~"$job"}}, service)'),
    ]
    narrowed = '{job=~"$job",service=~"$service"}'
    if with_model:
        chosen.append(variable("model", "Model", f"label_values({engine.ENGINE_UP}{narrowed}, model)"))
    chosen.append(variable("instance", "Instance", f"label_values({of_metric}{narrowed}, instance)"))
    return chosen


def alert_annotation(matchers: str = ',service=~"$service"') -> Json:
    """Where alerts began to fire; *matchers* narrow them, each after a comma."""
    return annotation(
        "Alerts",
        f'ALERTS{{alertstate="firing",severity=~"page|ticket|warning"{matchers}}}',
        RED,
        "{{alertname}}",
        "{{severity}} · {{service}} {{model}} {{instance}}",
    )


def annotations() -> list[Json]:
    """Alerts that fire, engines that started or changed version, model swaps, load runs."""
    info = of(engine.ENGINE_INFO, labels=WHOLE_ENGINE)
    up = of(engine.ENGINE_UP, labels=WHOLE_ENGINE)
    finished = of(engine.GENERATION_TOKENS_TOTAL, labels=WHOLE_ENGINE)
    return [
        alert_annotation(),
        annotation(
            "Deploys",
            f"count by (instance, version) ({info}) unless count by (instance, version) ({info} offset 1m)",
            BLUE,
            "Engine started or changed version",
            "{{instance}} runs {{version}}",
        ),
        annotation(
            "Model swaps",
            f"count by (instance, model) ({up}) unless count by (instance, model) ({up} offset 1m)"
            f" and on (instance) count by (instance) ({up} offset 1m)",
            PURPLE,
            "Another model is served",
            "{{instance}} serves {{model}}",
        ),
        annotation(
            "Load runs",
            f'{load.RUN_INFO}{{service=~"$service"}}',
            GREEN,
            "Load run {{run}}",
            "{{arrival}} loop on {{model}}",
        ),
        annotation(
            "Restarts",
            f"sum by (instance) (resets({finished}[1m])) > 0",
            ORANGE,
            "Counters began again",
            "{{instance}} was restarted",
        ),
    ]
