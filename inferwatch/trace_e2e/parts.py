"""A plan -> the running stack of the end-to-end run; each part can be ended and started again."""

import json
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import yaml

from inferwatch.bench import drift_sources
from inferwatch.stack import binaries, processes, traces, vllm_cpu
from inferwatch.stack import services as stack_services
from inferwatch.stack.config import prometheus_config, write_json, write_text
from inferwatch.stack.processes import Service
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import HOST, Settings
from inferwatch.stack.state import Record
from inferwatch.trace_e2e.plan import Plan, compressed
from slo.names import labels
from slo.names import rag as names

RAG = "rag"
PASSAGES, WORDS = 200, 40
# Spans leave within half a second, so that phases need not wait for the usual five.
QUICK = {"OTEL_BSP_SCHEDULE_DELAY": "500"}
READY_SECONDS = 300.0  # the RAG service embeds its passages once, on a busy machine


class Stand:
    """All parts of one run in *settings*' folder; a context manager that ends what it started."""

    def __init__(self, settings: Settings, plan: Plan, reporter: Reporter) -> None:
        self.settings, self.plan, self.reporter = settings, plan, reporter
        self._records: dict[str, Record] = {}
        self._services: dict[str, Service] = {}

    def __enter__(self) -> "Stand":
        tools = ("prometheus", "alertmanager", *traces.TOOLS)
        paths = {name: binaries.resolve(name, self.settings, self.reporter).path for name in tools}
        engine = vllm_cpu.ensure(self.settings, self.reporter)
        model = drift_sources.ensure(self.settings.cache_dir, self.reporter).model_dir
        self._write(engine, model)
        self._services = {one.name: one for one in self._wanted(paths, engine)}
        try:
            with self.reporter.task("starting vLLM, the RAG service and what watches them"):
                # Prometheus comes last: what is still starting is not down.
                for last in (False, True):
                    names_now = [one.name for one in self._services.values() if one.last == last]
                    for name in names_now:
                        self.begin(name)
                    for name in names_now:
                        self.ready(name)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for name in reversed(list(self._records)):
            self.end(name)

    def begin(self, name: str) -> None:
        """Start one part."""
        self._records[name] = processes.start(self._services[name], self.settings.logs_dir)

    def ready(self, name: str) -> None:
        """Wait until it answers; StackError when it does not."""
        processes.wait_ready(self._services[name], self._records[name], self.reporter)

    def end(self, name: str) -> None:
        """End one part."""
        processes.stop(self._records.pop(name))

    def _wanted(self, paths: dict[str, Path], engine: vllm_cpu.VllmCpu) -> list[Service]:
        settings = self.settings
        spec, rules = compressed(self.plan), settings.config_dir
        found = [
            *traces.services(settings, paths),
            vllm_cpu.service(engine, settings, traced=True),
            self._rag(),
            stack_services.receiver(settings),
            stack_services.alertmanager(settings, paths["alertmanager"]),
            stack_services.prometheus(spec, settings, paths["prometheus"], rules),
        ]
        return [replace(one, env={**one.env, **QUICK}) for one in found]

    def _rag(self) -> Service:
        listen = f"{HOST}:{self.settings.port('rag')}"
        config = self.settings.config_dir / "rag.yml"
        return Service(
            name=RAG,
            argv=stack_services.python("rag", "--config", str(config), "--listen", listen, "--faults"),
            url=self.settings.url("rag"),
            ready_path="/-/ready",
            env=traces.sender_env(self.settings, RAG),
            config_files=(config,),
            ready_timeout_seconds=READY_SECONDS,
        )

    def _write(self, engine: vllm_cpu.VllmCpu, model: Path) -> None:
        from alerts.alertmanager import config as alertmanager
        from alerts.collector import collector_alerts
        from alerts.rag import rag_groups
        from alerts.rule import Group, rule_file

        settings, spec = self.settings, compressed(self.plan)
        traces.write_files(settings)
        groups = (*rag_groups(spec), Group("collector", 1, collector_alerts(spec)))
        write_text(settings.config_dir / "rules.yaml", rule_file(groups))
        wanted = {names.JOB_COLLECTOR, names.JOB_SPANS, names.JOB_RAG}
        found = prometheus_config(spec, settings, traced=True)
        jobs = [job for job in found["scrape_configs"] if job["job_name"] in wanted]
        rules = [str(settings.config_dir / "rules.yaml")]
        text = yaml.safe_dump({**found, "rule_files": rules, "scrape_configs": jobs}, sort_keys=False)
        write_text(settings.prometheus_config, text)
        address = f"{HOST}:{settings.port('rag')}"
        write_json(settings.rag_file, [{"targets": [address], "labels": {labels.SERVICE: RAG}}])
        templates = str(settings.root / "alerts" / "alertmanager" / alertmanager.TEMPLATES)
        hook = f"{settings.url('receiver')}/notify"
        write_text(
            settings.alertmanager_config, alertmanager.render(spec, webhook_url=hook, templates=templates)
        )
        write_text(
            settings.config_dir / "rag.yml", yaml.safe_dump(json.loads(self._rag_config(engine, model)))
        )

    def _rag_config(self, engine: vllm_cpu.VllmCpu, model: Path) -> str:
        return json.dumps(
            {
                "engine": {
                    "url": self.settings.url("engine"),
                    "model": vllm_cpu.SERVED_MODEL,
                    "max_tokens": self.plan.answer_tokens,
                    "ignore_eos": True,
                },
                "embeddings": [{"model_dir": str(model)}],
                "corpus": {"passages": PASSAGES, "words": WORDS},
                "retrieval": {"keep": 2},
                "context": {"max_tokens": 1200, "tokenizer": str(engine.model_dir / "tokenizer.json")},
                "cache": {"file": str(self.settings.data_dir / "rag" / "l2.sqlite")},
                "data_dir": str(self.settings.cache_dir / "rag"),
            }
        )
