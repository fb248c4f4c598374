"""Looks at live engines for what the field gets wrong: evidence, why it matters, the flag to set."""
