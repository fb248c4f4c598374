"""The failure matrix: all rows. Every alert of ours stands in what one of them must bring."""

from inferwatch.scenarios.drift_rows import DRIFT
from inferwatch.scenarios.engine_rows import FLEET
from inferwatch.scenarios.node_rows import NODES
from inferwatch.scenarios.rag_rows import COLLECTOR, RAG
from inferwatch.scenarios.stack_rows import SENTINEL, WATCHERS

ROWS = (*FLEET, *WATCHERS, *SENTINEL, *NODES, *RAG, *COLLECTOR, *DRIFT)
