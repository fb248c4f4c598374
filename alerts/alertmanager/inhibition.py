"""Which alert silences which: the incident over its symptoms, the page over its ticket.

Alertmanager takes two missing labels for equal. So that one alert without a label never silences every
other one without it, both sides must carry each label that is compared (`<label>=~".+"`).
"""

from dataclasses import dataclass

from slo.names import alerts, labels

SYMPTOMS_OF_SERVICE = (
    alerts.AVAILABILITY_BURN_FAST,
    alerts.AVAILABILITY_BURN_SLOW,
    alerts.LATENCY_BURN_FAST,
    alerts.LATENCY_BURN_SLOW,
    alerts.REQUESTS_FAILING,
    alerts.CLIENTS_VANISHING,
    alerts.WAITING_REQUESTS_HIGH,
    alerts.KV_CACHE_PRESSURE,
    alerts.PREFIX_CACHE_HIT_LOW,
    alerts.PREEMPTION_STORM,
    alerts.ADMISSION_REJECTIONS,
    alerts.LATENCY_OFF_SCALE,
    alerts.MIXED_BUCKETS,
    alerts.JOINT_CRITICAL,
)
SYMPTOMS_OF_INSTANCE = (
    alerts.ENGINE_HUNG,
    alerts.ENGINE_ASLEEP,
    alerts.ENGINE_METRICS_MISSING,
    alerts.CANARY_FAILING,
    alerts.PROBES_FAILING,
    alerts.COUNTER_INCONSISTENT,
    alerts.TARGET_VANISHED,
)


@dataclass(frozen=True)
class Inhibition:
    """While a source fires (one without the label *source_without*), targets with equal labels are not notified."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    equal: tuple[str, ...]
    source_severity: str | None = None
    target_severity: str | None = None
    source_without: str | None = None

    def as_dict(self) -> dict[str, list[str]]:
        """The rule as Alertmanager reads it."""
        return {
            "source_matchers": self._matchers(self.source, self.source_severity)
            + ([f'{self.source_without}=""'] if self.source_without else []),
            "target_matchers": self._matchers(self.target, self.target_severity),
            "equal": list(self.equal),
        }

    def _matchers(self, names: tuple[str, ...], severity: str | None) -> list[str]:
        own = [f'alertname=~"{"|".join(names)}"'] if names else []
        level = [f'{labels.SEVERITY}="{severity}"'] if severity else []
        return own + level + [f'{label}=~".+"' for label in self.equal]


LATENCY_BURNS = (alerts.LATENCY_BURN_FAST, alerts.LATENCY_BURN_SLOW)
OF_SERVICE = (labels.SERVICE, labels.MODEL)
OF_INSTANCE = (labels.SERVICE, labels.INSTANCE)
OF_CORE = (labels.INSTANCE, labels.DP_RANK)
JOINT = (
    alerts.ENGINE_STARVED,
    alerts.LATENCY_MEMORY_BOUND,
    alerts.LATENCY_THROTTLED,
    alerts.PREEMPTIONS_MEMORY_FULL,
)
OF_STAGE = (labels.SERVICE, "stage")
SYMPTOMS_OF_RAG_SERVICE = (
    alerts.RAG_REQUESTS_FAILING,
    alerts.RAG_REQUEST_SLOW,
    alerts.RAG_STAGE_FAILING,
    alerts.RAG_STAGE_SLOW,
    alerts.RAG_SPANS_MISSING,
    alerts.RAG_POOL_EXHAUSTED,
    alerts.RAG_KEEPALIVE_RESETS,
    alerts.RAG_CACHE_HIT_COLLAPSED,
    alerts.RAG_CONTEXT_TRUNCATED,
)

INHIBITIONS = (
    Inhibition((alerts.SERVICE_DOWN,), SYMPTOMS_OF_SERVICE, OF_SERVICE),
    Inhibition((alerts.ENGINE_DOWN,), SYMPTOMS_OF_INSTANCE, OF_INSTANCE),
    Inhibition((alerts.ENGINE_HUNG,), (alerts.CANARY_FAILING, alerts.PROBES_FAILING), OF_INSTANCE),
    Inhibition((alerts.ENGINE_ASLEEP,), (alerts.CANARY_FAILING,), OF_INSTANCE),
    Inhibition(
        (alerts.ENGINE_METRICS_MISSING,), (alerts.PROBES_FAILING, alerts.TARGET_VANISHED), OF_INSTANCE
    ),
    Inhibition(
        (alerts.REQUESTS_FAILING,),
        (alerts.AVAILABILITY_BURN_FAST, alerts.AVAILABILITY_BURN_SLOW, alerts.ADMISSION_REJECTIONS),
        OF_SERVICE,
    ),
    Inhibition((alerts.SERVICE_VANISHED,), (alerts.TARGET_VANISHED, *SYMPTOMS_OF_SERVICE), OF_SERVICE),
    Inhibition(
        (),
        (),
        (labels.SERVICE, labels.MODEL, labels.SLOTH_ID),
        source_severity="page",
        target_severity="ticket",
    ),
    Inhibition((alerts.SERVICE_DOWN,), JOINT, OF_SERVICE),
    Inhibition((alerts.ENGINE_DOWN,), JOINT, OF_INSTANCE),
    Inhibition((alerts.ENGINE_STARVED,), (alerts.WAITING_REQUESTS_HIGH,), OF_SERVICE),
    Inhibition(
        (alerts.PREEMPTIONS_MEMORY_FULL,), (alerts.PREEMPTION_STORM, alerts.KV_CACHE_PRESSURE), OF_SERVICE
    ),
    Inhibition((alerts.NOISY_NEIGHBOUR,), (alerts.ENGINE_CPU_BOUND, alerts.GPU_WAITS_FOR_CPU), OF_CORE),
    Inhibition((alerts.ENGINE_CPU_BOUND,), (alerts.GPU_WAITS_FOR_CPU,), OF_CORE),
    Inhibition((alerts.NODE_AGENT_DOWN, alerts.GPU_LOST), (alerts.GPU_UNREADABLE,), (labels.INSTANCE,)),
    Inhibition((alerts.GPU_ROW_REMAP_FAILED,), (alerts.GPU_ROW_REMAP_PENDING,), ("uuid",)),
    Inhibition(
        (alerts.GPU_XID_HARDWARE,), (alerts.GPU_XID_APPLICATION, alerts.GPU_ECC_UNCORRECTED), ("uuid",)
    ),
    Inhibition((alerts.TENANT_OUT_OF_MEMORY,), (alerts.TENANT_MEMORY_PRESSURE,), ("tenant", "node")),
    Inhibition((alerts.JOINT_CRITICAL,), (alerts.JOINT_WARN, alerts.RETRIEVAL_POOR), (labels.SERVICE,)),
    Inhibition((alerts.JOINT_CRITICAL,), LATENCY_BURNS, OF_SERVICE),
    # What is retrieved is retrieved for every model of the service.
    Inhibition((alerts.JOINT_CRITICAL,), LATENCY_BURNS, (labels.SERVICE,), source_without=labels.MODEL),
    Inhibition((alerts.MODEL_SWAPPED,), (alerts.DRIFT_UNKNOWN,), OF_SERVICE),
    # One slow stage is one notification: not one more for the request that it makes slow, or for the pool whose
    # connections it holds. A stage that fails is told once, by its page where the whole service fails.
    Inhibition((alerts.RAG_SERVICE_DOWN,), SYMPTOMS_OF_RAG_SERVICE, (labels.SERVICE,)),
    Inhibition(
        (alerts.RAG_REQUESTS_FAILING,),
        (alerts.RAG_STAGE_FAILING, alerts.RAG_STAGE_SLOW, alerts.RAG_REQUEST_SLOW),
        (labels.SERVICE,),
    ),
    Inhibition((alerts.RAG_STAGE_FAILING,), (alerts.RAG_STAGE_SLOW, alerts.RAG_POOL_EXHAUSTED), OF_STAGE),
    Inhibition((alerts.RAG_STAGE_SLOW,), (alerts.RAG_REQUEST_SLOW,), (labels.SERVICE,)),
    Inhibition((alerts.RAG_STAGE_SLOW,), (alerts.RAG_POOL_EXHAUSTED,), OF_STAGE),
    Inhibition((alerts.COLLECTOR_DOWN,), (alerts.RAG_SPANS_MISSING,), ()),
    # A target is no service: its own alert and the one on its scrapes are of one job or instance. The rule of
    # ScrapesFailing itself leaves out RAG services that are gone, whose page names neither.
    Inhibition((alerts.COLLECTOR_DOWN, alerts.EXPORTER_DOWN), (alerts.SCRAPES_FAILING,), ("job",)),
    Inhibition(
        (alerts.ALERTMANAGER_DOWN, alerts.NODE_AGENT_DOWN, alerts.ENGINE_DOWN, alerts.PROBES_FAILING),
        (alerts.SCRAPES_FAILING,),
        (labels.INSTANCE,),
    ),
    # The floor is that of all engines and models of a service together: one that serves nothing is why.
    Inhibition(
        (
            alerts.SERVICE_DOWN,
            alerts.SERVICE_VANISHED,
            alerts.ENGINE_DOWN,
            alerts.ENGINE_HUNG,
            alerts.ENGINE_ASLEEP,
        ),
        (alerts.THROUGHPUT_LOW,),
        (labels.SERVICE,),
    ),
)
"""The literal list; a new rule is one line."""
