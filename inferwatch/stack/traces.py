"""Settings -> the services that take, sample and keep traces: Jaeger, the collector, the watcher of firing models."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from inferwatch.stack.processes import Service
from inferwatch.stack.settings import HOST, Settings

COLLECTOR = "otelcol-inferwatch"
JAEGER = "jaeger"
TOOLS = (JAEGER, COLLECTOR)
"""Commands of inferwatch.stack.binaries that tracing needs."""
COLLECTOR_MIB = 320
FIRING_OFF = "[]\n"
PRODUCTION = "production"


def services(settings: Settings, binaries: Mapping[str, Path]) -> list[Service]:
    """
    Return the services of tracing, in start order; none where *binaries* lacks Jaeger or the collector.

    In production a second collector samples and is told which models have a firing alert; in staging every
    trace is kept and one collector does all.
    """
    if not all(tool in binaries for tool in TOOLS):
        return []
    keeper = jaeger(settings, binaries[JAEGER])
    if settings.environment != PRODUCTION:
        return [keeper, collector(settings, binaries[COLLECTOR], ALONE)]
    first, second = (collector(settings, binaries[COLLECTOR], role) for role in (COUNTS, SAMPLES))
    return [keeper, second, first, firing(settings)]


def jaeger(settings: Settings, binary: Path) -> Service:
    """Jaeger on loopback; OTLP over gRPC in, its query API out."""
    config = settings.root / "deploy" / "jaeger" / "config.yaml"
    return Service(
        name="jaeger",
        argv=(str(binary), "--config", str(config)),
        url=settings.url("jaeger"),
        ready_path="/api/services",
        env={
            "INFERWATCH_JAEGER_HOST": HOST,
            "INFERWATCH_JAEGER_OTLP_PORT": str(settings.port("jaeger-otlp")),
            "INFERWATCH_JAEGER_QUERY_PORT": str(settings.port("jaeger")),
            "INFERWATCH_JAEGER_QUERY_GRPC_PORT": str(settings.port("jaeger-grpc")),
            "INFERWATCH_JAEGER_HEALTH_PORT": str(settings.port("jaeger-health")),
            "INFERWATCH_JAEGER_SELF_PORT": str(settings.port("jaeger-self")),
            "INFERWATCH_JAEGER_DIR": str(settings.data_dir / "jaeger"),
            "GOMEMLIMIT": "300MiB",
            "OTEL_TRACES_SAMPLER": "always_off",  # it would send spans of its own to a port that is not there
        },
        config_files=(config,),
        extra_ports=tuple(
            settings.port(name) for name in ("jaeger-otlp", "jaeger-grpc", "jaeger-health", "jaeger-self")
        ),
    )


@dataclass(frozen=True)
class Role:
    """One collector of the stack: *ports* are names of the launcher's ports by variable of config.yaml."""

    name: str
    ports: Mapping[str, str]
    sends_to: str
    env: Mapping[str, str] = field(default_factory=dict)


_FRONT_PORTS = {
    "INFERWATCH_OTLP_GRPC_PORT": "otlp-grpc",
    "INFERWATCH_OTLP_HTTP_PORT": "otlp-http",
    "INFERWATCH_SPANS_PORT": "collector-spans",
    "INFERWATCH_SELF_PORT": "collector-self",
}
ALONE = Role("collector", _FRONT_PORTS, "jaeger-otlp")
COUNTS = Role("collector", _FRONT_PORTS, "sampler-grpc", {"INFERWATCH_TRACE_CHOICE": "[filter/links, batch]"})
SAMPLES = Role(
    "sampler",
    {
        "INFERWATCH_OTLP_GRPC_PORT": "sampler-grpc",
        "INFERWATCH_OTLP_HTTP_PORT": "sampler-http",
        "INFERWATCH_SPANS_PORT": "sampler-spans",
        "INFERWATCH_SELF_PORT": "sampler-self",
    },
    "jaeger-otlp",
    {"INFERWATCH_TRACE_INTAKE": "[memory_limiter]"},
)


def collector(settings: Settings, binary: Path, role: Role) -> Service:
    """A collector of otel-collector/config.yaml on loopback."""
    config = settings.root / "otel-collector" / "config.yaml"
    return Service(
        name=role.name,
        argv=(str(binary), "--config", str(config)),
        url=settings.url(role.name),
        ready_path="/",
        env=collector_env(settings, role),
        config_files=(config,),
        extra_ports=tuple(settings.port(name) for name in role.ports.values()),
    )


def collector_env(settings: Settings, role: Role = ALONE) -> dict[str, str]:
    """The variables of otel-collector/config.yaml for this stack."""
    data = settings.data_dir / role.name
    return {
        "INFERWATCH_ENVIRONMENT": settings.environment,
        "INFERWATCH_FIRING_MODELS": "${file:" + str(settings.firing_file) + "}",
        "INFERWATCH_OTLP_HOST": HOST,
        "INFERWATCH_METRICS_HOST": HOST,
        "INFERWATCH_HEALTH_PORT": str(settings.port(role.name)),
        **{variable: str(settings.port(name)) for variable, name in role.ports.items()},
        "INFERWATCH_JAEGER_ENDPOINT": f"{HOST}:{settings.port(role.sends_to)}",
        "INFERWATCH_TRACE_EXPORTERS": "[otlp_grpc/jaeger]",
        "INFERWATCH_LOG_EXPORTERS": "[file/logs]",
        "INFERWATCH_LOGS_FILE": str(data / "logs.jsonl"),
        "INFERWATCH_QUEUE_DIR": str(data / "queue"),
        "INFERWATCH_COLLECTOR_MIB": str(COLLECTOR_MIB),
        "GOMEMLIMIT": f"{COLLECTOR_MIB * 4 // 5}MiB",
        **role.env,
    }


def firing(settings: Settings) -> Service:
    """The watcher that tells the sampler which models have a firing alert."""
    return Service(
        name="firing",
        argv=(
            *(sys.executable, "-m", "inferwatch.collector.firing"),
            *("--listen", f"{HOST}:{settings.port('firing')}", "--prometheus", settings.url("prometheus")),
            *("--file", str(settings.firing_file), "--state", str(settings.state_file)),
            *("--sampler", SAMPLES.name),
        ),
        url=settings.url("firing"),
        ready_path="/-/healthy",
    )


def write_files(settings: Settings) -> None:
    """Make what the collector reads at start where it is missing: the list of firing models, and its folders."""
    for role in (COUNTS, SAMPLES):
        (settings.data_dir / role.name).mkdir(parents=True, exist_ok=True)
    settings.firing_file.parent.mkdir(parents=True, exist_ok=True)
    if not settings.firing_file.is_file():
        settings.firing_file.write_text(FIRING_OFF, encoding="utf-8")


def sender_env(settings: Settings, service: str) -> dict[str, str]:
    """OpenTelemetry's standard variables for a process that sends its spans to this stack's collector."""
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": settings.url("otlp-http"),
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_SERVICE_NAME": service,
    }


def vllm_args(endpoint: str | None) -> tuple[str, ...]:
    """
    What a vLLM is started with so that it sends its spans to the base URL *endpoint*; nothing where there is none.

    It then says of each answer, too, how much of the prompt was cached, which its spans do not.
    """
    if not endpoint:
        return ()
    return ("--otlp-traces-endpoint", f"{endpoint}/v1/traces", "--enable-prompt-tokens-details")


def vllm_env(model: str) -> dict[str, str]:
    """Variables for the same: vLLM speaks gRPC unless told, and its spans do not name the model by themselves."""
    return {
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
        "OTEL_SERVICE_NAME": "vllm",
        "OTEL_RESOURCE_ATTRIBUTES": f"gen_ai.request.model={model}",
    }


def vllm_log_env(settings: Settings) -> dict[str, str]:
    """Variables with which a vLLM sends its log lines, too, beside writing them."""
    logs = settings.root / "deploy" / "logs"
    return {
        "VLLM_LOGGING_CONFIG_PATH": str(logs / "vllm.json"),
        "PYTHONPATH": str(logs),
        "OTEL_EXPORTER_OTLP_ENDPOINT": settings.url("otlp-http"),
    }
