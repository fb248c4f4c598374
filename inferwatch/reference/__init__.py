"""What we publish, written down from the places that define it."""
