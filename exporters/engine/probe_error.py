"""Why a probe failed: one of slo.names.engine.PROBE_REASONS and what was seen."""


class ProbeError(Exception):
    """A probe that failed for `reason`; `detail` is for people and goes into a comment of the answer."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
