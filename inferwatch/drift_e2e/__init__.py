"""Embedding drift end to end: a real embedding server, the tap, Prometheus and Alertmanager, on compressed time."""
