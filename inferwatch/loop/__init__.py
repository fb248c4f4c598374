"""The loop: a real engine is loaded, measured, judged and broken, and each claim is held against the client."""
