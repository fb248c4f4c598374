"""Load clients side by side on a server that knows the truth."""
