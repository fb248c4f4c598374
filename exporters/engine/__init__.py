"""Any engine's /metrics to the canonical llm_* families, target by target: GET /probe?target=URL.

Reading order: server.py (flags, routes) -> probe.py (one probe) -> targets.py (may we?) -> fetch.py
(read it) -> translate.py (with the engine's adapter, vllm.py) -> render.py (the answer).
"""
