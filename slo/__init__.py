"""What is promised: slo.yaml as frozen objects, the burn arithmetic, and every name we publish."""
