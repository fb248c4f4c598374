"""How much is asked and how long phases are; slo.yaml with its times compressed and its thresholds as shipped."""

from dataclasses import dataclass

import yaml

from slo import spec as slo_spec
from slo.spec import Spec


@dataclass(frozen=True)
class Plan:
    """
    Numbers of one run; seconds unless said. They are fixed before it: a miss is reported.

    Attributes:
        workers: clients that ask one after the other.
        stage_sum_ratio: how far the sum of a request's stages may be from what its client saw.
        slowed, delay: the stage that is slowed, and by how much; over its threshold in slo.yaml, and little enough
            that the whole request stays within its own.
        outage: how long Jaeger is gone.
        window, hold: of the rules; they stand for the 5 minutes and the 1 minute of slo.yaml.
    """

    requests: int = 200
    workers: int = 2
    answer_tokens: int = 48
    stage_sum_ratio: float = 0.05
    slowed: str = "retrieval"
    delay: float = 0.6
    slow_on: float = 15.0
    outage: float = 60.0
    window: int = 30
    hold: int = 4
    patience: float = 150.0


def compressed(plan: Plan) -> Spec:
    """The shipped spec with short windows and intervals; promises, floors and limits are the shipped ones."""
    raw = yaml.safe_load(slo_spec.DEFAULT_PATH.read_text(encoding="utf-8"))
    window, hold = f"{plan.window}s", f"{plan.hold}s"
    raw["intervals"] |= {
        "scrape_seconds": 1, "scrape_timeout_seconds": 1, "evaluation_seconds": 1, "slow_evaluation_seconds": 2,
        "group_wait_seconds": 1,
    }  # fmt: skip
    rag = raw["rag"]
    rag |= {"window": window, "for": hold, "spans_missing_for": hold}
    for part in ("network", "pool", "cache", "collector"):
        rag[part]["for"] = hold
    rag["truncation"] |= {"window": window, "for": hold}
    return slo_spec.parse(raw, "compressed slo.yaml")
