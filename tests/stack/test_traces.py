"""The services of tracing: what runs in staging, what in production, and how it is told of the rest."""

from dataclasses import replace
from pathlib import Path

import pytest

from inferwatch.stack import config, selection, traces, vllm_cpu
from inferwatch.stack.errors import StackError
from inferwatch.stack.settings import Settings, default_settings
from inferwatch.stack.state import State
from slo import spec as slo_spec

TOOLS = {"jaeger": Path("/bin/jaeger"), "otelcol-inferwatch": Path("/bin/otelcol")}


def test_staging_has_one_collector_that_keeps_everything(settings: Settings) -> None:
    """Jaeger first, so that the collector finds it; spans go straight there."""
    found = traces.services(settings, TOOLS)

    assert [service.name for service in found] == ["jaeger", "collector"]
    env = found[1].env
    assert env["INFERWATCH_ENVIRONMENT"] == "staging"
    assert env["INFERWATCH_JAEGER_ENDPOINT"] == "127.0.0.1:19187"
    assert "INFERWATCH_TRACE_CHOICE" not in env


def test_production_samples_in_a_collector_of_its_own(settings: Settings) -> None:
    """The first counts and passes on; the second samples and is told of firing models by the watcher."""
    jaeger, sampler, front, firing = traces.services(replace(settings, environment="production"), TOOLS)

    assert (jaeger.name, sampler.name, front.name, firing.name) == (
        "jaeger",
        "sampler",
        "collector",
        "firing",
    )
    assert front.env["INFERWATCH_JAEGER_ENDPOINT"] == f"127.0.0.1:{settings.port('sampler-grpc')}"
    assert front.env["INFERWATCH_TRACE_CHOICE"] == "[filter/links, batch]"
    assert sampler.env["INFERWATCH_TRACE_INTAKE"] == "[memory_limiter]"
    assert sampler.env["INFERWATCH_JAEGER_ENDPOINT"] == "127.0.0.1:19187"
    assert sampler.env["INFERWATCH_FIRING_MODELS"] == f"${{file:{settings.firing_file}}}"
    assert firing.argv[-1] == sampler.name
    assert front.env["INFERWATCH_QUEUE_DIR"] != sampler.env["INFERWATCH_QUEUE_DIR"]


def test_all_ports_are_of_one_service_each(settings: Settings) -> None:
    """No two processes of production listen on one port, and each is checked before anything starts."""
    found = traces.services(replace(settings, environment="production"), TOOLS)
    ports = [port for one in found for port in (int(one.url.rsplit(":", 1)[1]), *one.extra_ports)]

    assert len(ports) == len(set(ports)) == 16


def test_without_the_tools_there_is_no_tracing(settings: Settings) -> None:
    """Stacks of tests and scenarios ask for less, and Prometheus then scrapes no collector."""
    assert traces.services(settings, {"prometheus": Path("/bin/prometheus")}) == []
    jobs = {job["job_name"] for job in config.prometheus_config(slo_spec.load(), settings)["scrape_configs"]}
    assert not jobs & {"otel-collector", "otel-collector-spans", "rag", "firing-models"}


def test_prometheus_scrapes_collectors_spans_and_the_watcher(settings: Settings) -> None:
    """Span metrics keep their own labels; exemplars have room."""
    made = config.prometheus_config(slo_spec.load(), replace(settings, environment="production"), traced=True)
    jobs = {job["job_name"]: job for job in made["scrape_configs"]}

    assert made["storage"] == {"exemplars": {"max_exemplars": 100000}}
    assert jobs["otel-collector"]["static_configs"] == [{"targets": ["127.0.0.1:19188", "127.0.0.1:19190"]}]
    assert jobs["otel-collector-spans"]["honor_labels"] is True
    assert jobs["firing-models"]["static_configs"] == [{"targets": ["127.0.0.1:19120"]}]


def test_vllm_sends_its_spans_when_there_is_a_collector(settings: Settings) -> None:
    """Its spans name no model, so its resource does."""
    engine = vllm_cpu.VllmCpu("0.32.0", Path("/v/bin/python"), Path("/m"))
    traced = vllm_cpu.service(engine, settings, traced=True)
    plain = vllm_cpu.service(engine, settings)

    at = traced.argv.index("--otlp-traces-endpoint")
    assert traced.argv[at + 1] == "http://127.0.0.1:19118/v1/traces"
    assert traced.env["OTEL_RESOURCE_ATTRIBUTES"] == "gen_ai.request.model=tiny"
    assert Path(traced.env["VLLM_LOGGING_CONFIG_PATH"]).is_file()
    assert traced.env["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://127.0.0.1:19118"
    assert "--otlp-traces-endpoint" not in plain.argv
    assert "OTEL_RESOURCE_ATTRIBUTES" not in plain.env


def test_the_list_of_firing_models_is_made_and_kept(settings: Settings) -> None:
    """Empty at first; what the watcher wrote survives the next `up`."""
    traces.write_files(settings)
    assert settings.firing_file.read_text() == "[]\n"
    settings.firing_file.write_text('["tiny"]\n')
    traces.write_files(settings)
    assert settings.firing_file.read_text() == '["tiny"]\n'


def test_an_unknown_environment_is_refused() -> None:
    """A misspelt one would sample, or not, without anybody wanting it."""
    assert default_settings(environ={"HOME": "/tmp"}).environment == "staging"
    with pytest.raises(StackError, match="INFERWATCH_ENVIRONMENT=prod: use production or staging"):
        default_settings(environ={"INFERWATCH_ENVIRONMENT": "prod"})


def test_rag_stands_in_front_of_an_engine_of_ours_only(settings: Settings) -> None:
    """--rag is remembered by the next `up`; in front of a URL it is an error that says what to do."""
    chosen = selection.choose(("sim",), None, settings, State(), rag=True)
    again = selection.choose((), None, settings, State(19000, chosen))

    assert chosen.rag
    assert again.rag
    with pytest.raises(StackError, match="python -m rag --engine URL"):
        selection.choose(("http://127.0.0.1:8000",), None, settings, State(), rag=True)
