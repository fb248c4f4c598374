"""Embedding vectors in, drift against a reference profile out: tap, ingest, windows, detectors, states."""
