"""Reads the history there is and proposes objectives at bucket bounds, with what each would have cost."""
