"""What is kept of traces: the share of the uninteresting ones, how long a trace is waited for, how much may queue."""

from pydantic import Field

from slo.base import PositiveSeconds, Ratio, Strict


class Traces(Strict):
    """
    Read by the collector's configuration.

    Attributes:
        keep_ratio: share kept of traces that are neither slow nor failed nor of a firing model.
        longest_request: a trace whose root was not seen is judged so long after its first span.
        settle: one whose root was seen is judged so long after it: spans come in batches.
        queue_mib: what may wait on disk for a dead backend.
    """

    keep_ratio: Ratio
    longest_request: PositiveSeconds
    settle: PositiveSeconds
    queue_mib: int = Field(gt=0)
