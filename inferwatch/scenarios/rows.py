"""The failure matrix: all rows, and which alerts none of them can bring, with what shows those live instead."""

from inferwatch.scenarios.engine_rows import FLEET
from inferwatch.scenarios.node_rows import NODES
from inferwatch.scenarios.rag_rows import COLLECTOR, RAG
from inferwatch.scenarios.stack_rows import SENTINEL, WATCHERS
from slo.names import alerts

ROWS = (*FLEET, *WATCHERS, *SENTINEL, *NODES, *RAG, *COLLECTOR)

_DRIFT_RUN = "needs embeddings of real text and a window of 15 min that is full of them; live on compressed time: `make drift-e2e`"
_DRIFT_TESTS = (
    "needs embeddings of real text and a window of 15 min that is full of them; `make drift-e2e` has the same exporter "
    "and rules live, but does not bring this one"
)
NOT_IN_THE_MATRIX = {
    alerts.GPU_POWER_CAPPED: "is held for 30 min, because a full GPU is at its power limit in good health; live nowhere",
    alerts.JOINT_CRITICAL: _DRIFT_RUN,
    alerts.JOINT_WARN: _DRIFT_RUN,
    alerts.MODEL_SWAPPED: _DRIFT_RUN,
    alerts.DRIFT_UNKNOWN: _DRIFT_TESTS,
    alerts.VECTORS_REJECTED: _DRIFT_TESTS,
    alerts.RETRIEVAL_POOR: _DRIFT_TESTS,
}
"""Alert -> why no row brings it on production intervals within 15 minutes, and the command that shows it live where one
does. All of them have promtool tests in tests/alerts."""
