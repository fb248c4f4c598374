"""Routes, receivers, inhibition and texts of notifications."""

from alerts.alertmanager.config import render

__all__ = ["render"]
