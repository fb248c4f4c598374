"""Alert names. Each has a rule, a runbook alerts/runbooks/<name>.md and a promtool test."""

# States of one engine, or of everything that serves a model.
ENGINE_DOWN = "EngineDown"
SERVICE_DOWN = "ServiceDown"
ENGINE_HUNG = "EngineHung"
ENGINE_ASLEEP = "EngineAsleep"
ENGINE_METRICS_MISSING = "EngineMetricsMissing"
CANARY_FAILING = "CanaryFailing"
REQUESTS_FAILING = "RequestsFailing"
TARGET_VANISHED = "TargetVanished"
SERVICE_VANISHED = "ServiceVanished"

# Error budgets.
AVAILABILITY_BURN_FAST = "AvailabilityBurnFast"
AVAILABILITY_BURN_SLOW = "AvailabilityBurnSlow"
LATENCY_BURN_FAST = "LatencyBurnFast"
LATENCY_BURN_SLOW = "LatencyBurnSlow"
ERROR_BUDGET_LOW = "ErrorBudgetLow"
THROUGHPUT_LOW = "ThroughputLow"

# Early signals.
WAITING_REQUESTS_HIGH = "WaitingRequestsHigh"
PREFIX_CACHE_HIT_LOW = "PrefixCacheHitLow"
KV_CACHE_PRESSURE = "KvCachePressure"
PREEMPTION_STORM = "PreemptionStorm"
ADMISSION_REJECTIONS = "AdmissionRejections"
CLIENTS_VANISHING = "ClientsVanishing"

# Numbers that cannot be trusted.
COUNTER_INCONSISTENT = "CounterInconsistent"
MIXED_BUCKETS = "MixedBuckets"
LATENCY_OFF_SCALE = "LatencyOffScale"
PROBES_FAILING = "ProbesFailing"

# Embeddings, and latency with them.
JOINT_CRITICAL = "LatencyAndDriftCritical"
JOINT_WARN = "LatencyOrDriftWarning"
MODEL_SWAPPED = "EmbeddingModelSwapped"
DRIFT_UNKNOWN = "EmbeddingDriftUnknown"
VECTORS_REJECTED = "EmbeddingVectorsRejected"
RETRIEVAL_POOR = "RetrievalPoor"

# The stack itself.
EXPORTER_DOWN = "ExporterDown"
SCRAPES_FAILING = "ScrapesFailing"
RULE_EVALUATION_FAILING = "RuleEvaluationFailing"
RULE_EVALUATION_SLOW = "RuleEvaluationSlow"
INGESTION_FAILING = "IngestionFailing"
PROMETHEUS_CONFIG_FAILED = "PrometheusConfigFailed"
ALERTS_NOT_SENT = "AlertsNotSent"
ALERTMANAGER_DOWN = "AlertmanagerDown"
ALERTMANAGER_CONFIG_FAILED = "AlertmanagerConfigFailed"
ALERTMANAGER_CLUSTER_DEGRADED = "AlertmanagerClusterDegraded"
NOTIFICATIONS_FAILING = "NotificationsFailing"
WATCHDOG = "Watchdog"

# GPU, process and host.
GPU_LOST = "GpuLost"
GPU_UNREADABLE = "GpuUnreadable"
NODE_AGENT_DOWN = "NodeAgentDown"
GPU_XID_HARDWARE = "GpuXidHardware"
GPU_XID_APPLICATION = "GpuXidApplication"
GPU_ECC_UNCORRECTED = "GpuEccUncorrected"
GPU_ROW_REMAP_FAILED = "GpuRowRemapFailed"
GPU_ROW_REMAP_PENDING = "GpuRowRemapPending"
GPU_THERMAL_THROTTLED = "GpuThermalThrottled"
GPU_POWER_BRAKED = "GpuPowerBraked"
GPU_POWER_CAPPED = "GpuPowerCapped"
GPU_MEMORY_NEARLY_FULL = "GpuMemoryNearlyFull"
ENGINE_CPU_BOUND = "EngineCpuBound"
GPU_WAITS_FOR_CPU = "GpuWaitsForCpu"
TENANT_CPU_THROTTLED = "TenantCpuThrottled"
TENANT_MEMORY_PRESSURE = "TenantMemoryPressure"
TENANT_OUT_OF_MEMORY = "TenantOutOfMemory"
NOISY_NEIGHBOUR = "NoisyNeighbour"

# GPU × engine.
ENGINE_STARVED = "EngineStarved"
LATENCY_MEMORY_BOUND = "LatencyMemoryBound"
LATENCY_THROTTLED = "LatencyThrottled"
PREEMPTIONS_MEMORY_FULL = "PreemptionsMemoryFull"

# RAG services and what is told of them by spans.
RAG_SERVICE_DOWN = "RagServiceDown"
RAG_REQUESTS_FAILING = "RagRequestsFailing"
RAG_REQUEST_SLOW = "RagRequestSlow"
RAG_STAGE_FAILING = "RagStageFailing"
RAG_STAGE_SLOW = "RagStageSlow"
RAG_SPANS_MISSING = "RagSpansMissing"
RAG_POOL_EXHAUSTED = "RagPoolExhausted"
RAG_KEEPALIVE_RESETS = "RagKeepaliveResets"
RAG_CACHE_HIT_COLLAPSED = "RagCacheHitCollapsed"
RAG_CONTEXT_TRUNCATED = "RagContextTruncated"
RAG_VERSION_WORSE = "RagVersionWorse"
NETWORK_SLOW = "NetworkSlow"

# The collector that spans go through.
COLLECTOR_DOWN = "CollectorDown"
SPANS_REFUSED = "SpansRefused"
SPANS_LOST = "SpansLost"
SPAN_QUEUE_FILLING = "SpanQueueFilling"
