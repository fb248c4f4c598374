"""How long windows and phases of the end-to-end run are; slo.yaml with its times compressed."""

from dataclasses import dataclass

import yaml

from slo import spec as slo_spec
from slo.spec import Spec


@dataclass(frozen=True)
class Plan:
    """
    Numbers of one run; seconds unless said.

    A window of *window* stands for the 15 minutes of slo.yaml, with the same rules, states and alerts.
    """

    window: int = 20
    slices: int = 5
    sample_size: int = 200
    min_samples: int = 100
    reference_texts: int = 1000
    texts_per_second: float = 20.0
    texts_per_request: int = 4
    healthy: float = 40.0
    patience: float = 75.0
    quick_retrieval: float = 0.05
    slow_retrieval: float = 1.2
    calibration_rounds: int = 240


def compressed(plan: Plan) -> Spec:
    """
    The shipped spec with short windows and intervals; thresholds, levels and cells are the shipped ones.

    `min_requests` is 5 in place of 100: so many come within a window of seconds.
    """
    raw = yaml.safe_load(slo_spec.DEFAULT_PATH.read_text(encoding="utf-8"))
    raw["intervals"] |= {
        "scrape_seconds": 1, "scrape_timeout_seconds": 1, "evaluation_seconds": 1, "slow_evaluation_seconds": 1,
        "group_wait_seconds": 1,
        "repeat_interval_seconds": 3600,
    }  # fmt: skip
    raw["latency"] |= {"window": f"{plan.window // 2}s"}
    raw["joint"] |= {"for": "2s", "warn_for": "7s", "min_requests": 5}
    raw["drift"] |= {
        "window": f"{plan.window}s", "slices": plan.slices, "every": "1s",
        "sample_size": plan.sample_size, "min_samples": plan.min_samples, "swapped": {"for": "2s"},
    }  # fmt: skip
    raw["drift"]["retrieval"] |= {"window": f"{plan.window}s", "min_retrievals": 20, "for": "2s"}
    return slo_spec.parse(raw, "compressed slo.yaml")
