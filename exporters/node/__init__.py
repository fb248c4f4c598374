"""The node agent: what NVML and the kernel know about a GPU host and an engine's own metrics do not."""
