"""Recorded windows read from Prometheus -> what they say about the promises, as grids."""
