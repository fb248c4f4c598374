"""How the load client's process ended, known to it and to whoever started it."""

CRASHED = 70  # our own fault: nothing it measured can be trusted
NOT_OVER = 75  # it was told to end before its plan was over; what it measured until then is good
