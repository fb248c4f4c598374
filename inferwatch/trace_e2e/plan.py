"""How much is asked and how long phases are; slo.yaml with its times compressed and promises that a shared CPU keeps."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from slo import spec as slo_spec
from slo.spec import Spec

SHARED_CPU_SECONDS = {
    "request": 20.0, "embedding": 2.0, "retrieval": 1.0, "rerank": 2.0, "assemble": 1.0, "generate": 20.0,
}  # fmt: skip
SHARED_CPU_NETWORK_SECONDS = 1.0
SHARED_CPU_POOL_SECONDS = 1.0
MIN_REQUESTS = 10  # in a window of 30 s in place of 5 min


@dataclass(frozen=True)
class Plan:
    """
    Numbers of one run; seconds unless said. They are fixed before it: a miss is reported.

    Attributes:
        workers: clients that ask one after the other.
        stage_sum_ratio: how far the sum of a request's stages may be from what its client saw.
        thresholds: promises of each stage for an engine on one core of a machine with other work; the shipped ones
            are a served engine's, and what broke them here would be the machine.
        slowed, delay: the stage that is slowed, and by how much; over its threshold, and little enough that the
            whole request stays within its own.
        outage: how long Jaeger is gone.
        window, hold: of the rules; they stand for the 5 minutes and the 1 minute of slo.yaml.
    """

    requests: int = 200
    workers: int = 2
    answer_tokens: int = 48
    stage_sum_ratio: float = 0.05
    thresholds: Mapping[str, float] = field(default_factory=lambda: dict(SHARED_CPU_SECONDS))
    slowed: str = "retrieval"
    delay: float = 1.5
    slow_on: float = 15.0
    outage: float = 60.0
    window: int = 30
    hold: int = 4
    patience: float = 150.0


def compressed(plan: Plan) -> Spec:
    """The shipped spec and rules with short windows and intervals, and the plan's thresholds."""
    raw = yaml.safe_load(slo_spec.DEFAULT_PATH.read_text(encoding="utf-8"))
    window, hold = f"{plan.window}s", f"{plan.hold}s"
    raw["intervals"] |= {
        "scrape_seconds": 1, "scrape_timeout_seconds": 1, "evaluation_seconds": 1, "slow_evaluation_seconds": 2,
        "group_wait_seconds": 1,
    }  # fmt: skip
    rag = raw["rag"]
    rag |= {"window": window, "for": hold, "spans_missing_for": hold, "min_requests": MIN_REQUESTS}
    for stage in rag["stages"]:
        stage["threshold_seconds"] = plan.thresholds[stage["id"]]
    rag["network"]["max_mean_seconds"] = SHARED_CPU_NETWORK_SECONDS
    rag["pool"]["max_wait_seconds"] = SHARED_CPU_POOL_SECONDS
    for part in ("network", "pool", "cache", "collector"):
        rag[part]["for"] = hold
    rag["truncation"] |= {"window": window, "for": hold}
    return slo_spec.parse(raw, "compressed slo.yaml")
