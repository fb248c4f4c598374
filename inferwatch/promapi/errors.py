"""What can go wrong between us and a Prometheus-style HTTP API, as one exception."""

from __future__ import annotations


class PromError(Exception):
    """A request to Prometheus or Alertmanager failed; the text names the URL, the cause and the mend."""
