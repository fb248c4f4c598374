"""Rows of embeddings: what a service sends to its drift exporter, what must be delivered then, and what must not."""

from inferwatch.scenarios.drift_faults import OtherEmbeddings, WithoutReference
from inferwatch.scenarios.drift_shape import OTHER_MODEL, Sent
from inferwatch.scenarios.engine_rows import TPOT
from inferwatch.scenarios.faults import Nothing
from inferwatch.scenarios.row import RECOVERY_SECONDS, Expected, History, Row
from slo.names import alerts

HEALTHY_SECONDS = 480.0
WINDOW = "what drifted stays in the window of 15 min: it ends after the run"
WINDOW_AND_GROUP = RECOVERY_SECONDS + 60.0
"""A rate over 5 min must forget the fault to its last sample."""
SHIFTED = Sent(shifted=1.0)
BUDGETS = (alerts.LATENCY_BURN_FAST, alerts.LATENCY_BURN_SLOW)
JOINT = (alerts.JOINT_CRITICAL, alerts.JOINT_WARN)
OTHERS = (
    alerts.MODEL_SWAPPED,
    alerts.DRIFT_UNKNOWN,
    alerts.VECTORS_REJECTED,
    alerts.RETRIEVAL_POOR,
    *BUDGETS,
)


def _but(alert: str) -> tuple[str, ...]:
    return tuple(one for one in (*OTHERS, *JOINT) if one != alert)


DRIFT = (
    Row(
        "drift-slow",
        # First in the table because it takes longest. Whole answers take four times as long as in the hour before,
        # and what is asked is about something else.
        OtherEmbeddings(SHIFTED, "slow_decode", {"factor": 4}),
        fires=(Expected(alerts.JOINT_CRITICAL, level=4.0, once=True),),
        # Once answers are quick again drift is alone, for as long as vectors of the other topics are in the window.
        may_fire=(alerts.JOINT_WARN,),
        # The promise on each token is broken by all answers, and its page comes due after four minutes.
        silent=OTHERS,
        stage="drift",
        sent=Sent(),
        latency_before_seconds=1.0,
        slos=(TPOT,),
        history=History(requests_per_second=1.5),
        fault_seconds=300.0,
    ),
    Row("drift-none", Nothing(HEALTHY_SECONDS), quiet=True, stage="drift", sent=Sent()),
    Row(
        "drift-alone",
        # Answers are as quick as ever, held against what is promised.
        OtherEmbeddings(SHIFTED),
        fires=(Expected(alerts.JOINT_WARN, recovers_seconds=None, why_not_shown=WINDOW),),
        silent=(*OTHERS, alerts.JOINT_CRITICAL),
        stage="drift",
        sent=Sent(),
    ),
    Row(
        "retrieval-slow",
        # No drift; retrievals take four times what is promised, which is their baseline where they have no past.
        OtherEmbeddings(Sent(retrieval_seconds=2.0)),
        fires=(Expected(alerts.JOINT_WARN, level=2.0, recovers_seconds=WINDOW_AND_GROUP),),
        silent=(*OTHERS, alerts.JOINT_CRITICAL),
        stage="drift",
        engines=0,
        sent=Sent(),
    ),
    Row(
        "retrieval-poor",
        OtherEmbeddings(Sent(poor=0.8)),
        fires=(
            Expected(
                alerts.RETRIEVAL_POOR,
                recovers_seconds=None,
                why_not_shown="its window is 15 min: it ends after the run",
            ),
        ),
        silent=_but(alerts.RETRIEVAL_POOR),
        stage="drift",
        engines=0,
        sent=Sent(),
    ),
    Row(
        "model-swapped",
        OtherEmbeddings(Sent(model=OTHER_MODEL)),
        fires=(
            Expected(
                alerts.MODEL_SWAPPED,
                {"reason": "model"},
                recovers_seconds=None,
                why_not_shown="a stream is watched until the last of it left its window of 15 min",
            ),
        ),
        silent=_but(alerts.MODEL_SWAPPED),
        stage="drift",
        engines=0,
        sent=Sent(),
    ),
    Row(
        "vectors-refused",
        OtherEmbeddings(Sent(unusable=10)),
        fires=(Expected(alerts.VECTORS_REJECTED, recovers_seconds=WINDOW_AND_GROUP),),
        silent=_but(alerts.VECTORS_REJECTED),
        stage="drift",
        engines=0,
        sent=Sent(),
        ci=True,
    ),
    Row(
        "drift-unknown",
        WithoutReference(),
        fires=(Expected(alerts.DRIFT_UNKNOWN),),
        # The exporter's window begins anew with the mend, at vectors that differ from run to run: now and then such a
        # window is called drift, as often as slo.yaml allows, and never for as long as a warning is held.
        silent=_but(alerts.DRIFT_UNKNOWN),
        stage="drift",
        engines=0,
        sent=Sent(),
    ),
)
