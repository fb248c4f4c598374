"""Measured claims: each module has `run() -> dict`, side by side with what it is compared to."""
