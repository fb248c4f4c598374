"""What stops the launcher, said for the person at the terminal."""


class StackError(Exception):
    """The stack cannot do what was asked; the text names the cause and the mend, no traceback is needed."""
