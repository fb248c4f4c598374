"""A client that tells the drift exporter of embeddings and retrievals, and never makes its caller wait."""

from inferwatch.drift_client.client import DriftClient, Stats

__all__ = ["DriftClient", "Stats"]
