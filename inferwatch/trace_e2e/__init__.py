"""Traces end to end: a client, the RAG service, a real vLLM, the collector, Jaeger, Prometheus, Alertmanager."""
