"""Successes and failures -> when the next canary request starts."""

from dataclasses import dataclass

JITTER_RATIO = 0.1
"""Waits are shortened by up to this share, so that targets do not march in step."""


@dataclass(frozen=True)
class Schedule:
    """All in seconds; a healthy target is asked every *interval*, a sick one less and less often."""

    interval_seconds: float
    timeout_seconds: float
    backoff_max_seconds: float

    def backoff_seconds(self, failures: int) -> float:
        """Return the wait in force after *failures* in a row; 0 when there was none.

        The first failure is asked again at the usual interval, so that one lost request is settled
        before anything alerts; from the second on the wait doubles, up to the maximum.
        """
        if failures == 0:
            return 0.0
        ceiling = max(self.interval_seconds, self.backoff_max_seconds)
        # 2**32 intervals are over any maximum; the bound keeps the power a float's size.
        return float(min(ceiling, self.interval_seconds * 2 ** min(failures - 1, 32)))

    def next_start(self, started: float, ended: float, failures: int, random: float) -> float:
        """Return when the next request starts, never before the last one ended.

        *started*, *ended* and the result are readings of one monotonic clock; *random* is in 0..1.
        """
        wait = self.backoff_seconds(failures) or self.interval_seconds
        return max(ended, started + wait * (1 - JITTER_RATIO * random))
