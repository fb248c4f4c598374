"""A simulated inference engine: requests and a scenario -> tokens, latencies and metrics."""
