"""The spec and the checkout -> manifests for Kubernetes, or files for a Prometheus of one's own."""
