"""Recorded /metrics series, played at their own times through exporter, Prometheus, rules and Alertmanager."""
