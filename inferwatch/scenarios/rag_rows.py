"""Rows of RAG services and of the collector: what is broken, what must be delivered then, and what must not."""

from inferwatch.scenarios.faults import Kill
from inferwatch.scenarios.rag_faults import BadLink, DeadBackend, OtherUsers, RagFault, Redeployed
from inferwatch.scenarios.rag_shape import FAR_MODEL, Instance, Users
from inferwatch.scenarios.row import RECOVERY_SECONDS, Expected, Row
from slo.names import alerts

WINDOW_AND_GROUP = RECOVERY_SECONDS + 60.0
"""A rate or quantile over 5 min must forget the fault to its last sample."""
ONE = (Instance(),)
FRESH = Users(fresh=True)
OTHERS = (alerts.RAG_SERVICE_DOWN, alerts.RAG_REQUESTS_FAILING)

RAG = (
    # First in the table because it takes longest.
    Row(
        "rag-version",
        # Two versions side by side, as in a roll-out; the index of one is slower, and still within its promise.
        RagFault("retrieval", {"delay_seconds": 0.12}, instance=1),
        fires=(
            Expected(
                alerts.RAG_VERSION_WORSE,
                {"stage": "retrieval", "version": "v2"},
                events_per_second=2.0,
                recovers_seconds=None,
                why_not_shown="versions are compared over 6 h: it ends after the run, or with a roll-back",
            ),
        ),
        silent=(*OTHERS, alerts.RAG_STAGE_FAILING),
        stage="rag",
        engines=0,
        rag=(Instance("v1"), Instance("v2")),
        users=Users((0, 1), per_second=4.0, fresh=True),
    ),
    Row(
        "rag-cache",
        # Users who ask what nobody asked before, on a past in which nearly every question was known.
        OtherUsers(FRESH),
        fires=(Expected(alerts.RAG_CACHE_HIT_COLLAPSED, {"level": "l1"}, level=0.0, healthy=0.95),),
        silent=(*OTHERS, alerts.RAG_STAGE_FAILING),
        stage="rag",
        engines=0,
        rag=ONE,
        cache_hit_before=0.95,
    ),
    Row(
        "rag-network",
        BadLink(delay_seconds=0.15),
        fires=(
            Expected(
                alerts.NETWORK_SLOW, {"model": FAR_MODEL}, level=0.15, recovers_seconds=WINDOW_AND_GROUP
            ),
        ),
        silent=(*OTHERS, alerts.RAG_STAGE_FAILING, alerts.RAG_STAGE_SLOW),
        stage="rag",
        engines=0,
        rag=(Instance(linked=True, model=FAR_MODEL),),
    ),
    Row(
        "rag-truncated",
        # A roll-out whose prompts hold less than what is found.
        OtherUsers(Users((1,))),
        fires=(
            Expected(
                alerts.RAG_CONTEXT_TRUNCATED,
                recovers_seconds=None,
                why_not_shown="its window is 15 min: it ends after the run",
            ),
        ),
        silent=(*OTHERS, alerts.RAG_STAGE_FAILING),
        stage="rag",
        engines=0,
        rag=(Instance(), Instance(context_tokens=40)),
    ),
    Row(
        "rag-spans-missing",
        # A service that was deployed with a wrong collector gets its first users; the mend sends them to another one.
        OtherUsers(Users((0,)), mended=Users((1,))),
        fires=(Expected(alerts.RAG_SPANS_MISSING, events_per_second=1.0),),
        silent=OTHERS,
        stage="rag",
        engines=0,
        rag=(Instance(sends_spans=False), Instance()),
        users=Users(()),
    ),
    Row(
        "rag-resets",
        BadLink(cuts=True),
        fires=(
            Expected(
                alerts.RAG_KEEPALIVE_RESETS,
                {"pool": "engine"},
                level=0.3,
                events_per_second=1.0,
                recovers_seconds=WINDOW_AND_GROUP,
            ),
        ),
        # Each is tried again, so no user sees any.
        silent=(*OTHERS, alerts.RAG_STAGE_FAILING),
        stage="rag",
        engines=0,
        rag=(Instance(linked=True),),
    ),
    Row(
        "rag-pool",
        # Three ask at once and there is one connection: two of them wait.
        RagFault("generate", {"pool_size": 1}),
        fires=(
            Expected(
                alerts.RAG_POOL_EXHAUSTED, {"pool": "engine"}, level=0.6, recovers_seconds=WINDOW_AND_GROUP
            ),
        ),
        silent=(*OTHERS, alerts.RAG_STAGE_FAILING, alerts.RAG_STAGE_SLOW),
        stage="rag",
        engines=0,
        rag=ONE,
        users=Users(per_second=1.2, together=3),
    ),
    Row(
        "rag-slow-stage",
        RagFault("retrieval", {"delay_seconds": 0.5}),
        fires=(
            Expected(
                alerts.RAG_STAGE_SLOW, {"stage": "retrieval"}, level=0.5, recovers_seconds=WINDOW_AND_GROUP
            ),
        ),
        silent=(*OTHERS, alerts.RAG_REQUEST_SLOW, alerts.RAG_STAGE_FAILING),
        stage="rag",
        engines=0,
        rag=ONE,
        users=FRESH,
    ),
    Row(
        "rag-slow-request",
        # Bodies that are long on their way: no stage is slow, for that would silence the request's own alert.
        OtherUsers(Users(upload_seconds=6.0)),
        fires=(Expected(alerts.RAG_REQUEST_SLOW, level=6.0, recovers_seconds=WINDOW_AND_GROUP),),
        silent=(*OTHERS, alerts.RAG_STAGE_FAILING),
        stage="rag",
        engines=0,
        rag=ONE,
    ),
    Row(
        "rag-failing-stage",
        RagFault("rerank", {"fail_ratio": 0.2}),
        fires=(
            Expected(
                alerts.RAG_STAGE_FAILING, {"stage": "rerank"}, level=0.2, recovers_seconds=WINDOW_AND_GROUP
            ),
        ),
        silent=(*OTHERS, alerts.RAG_REQUEST_SLOW),
        stage="rag",
        engines=0,
        rag=ONE,
        users=FRESH,
    ),
    Row(
        "rag-failing",
        RagFault("generate", {"fail_ratio": 1.0}),
        fires=(Expected(alerts.RAG_REQUESTS_FAILING, events_per_second=2.0),),
        # Its page silences the stage's ticket only as long as it fires.
        may_fire=(alerts.RAG_STAGE_FAILING,),
        silent=(alerts.RAG_SERVICE_DOWN,),
        stage="rag",
        engines=0,
        rag=ONE,
        users=Users(per_second=2.0),
    ),
    Row(
        "rag-down",
        Kill("rag-down-0"),
        fires=(Expected(alerts.RAG_SERVICE_DOWN),),
        silent=(alerts.RAG_REQUESTS_FAILING, alerts.RAG_STAGE_FAILING, alerts.RAG_SPANS_MISSING),
        stage="rag",
        engines=0,
        rag=ONE,
    ),
)

COLLECTOR = (
    Row(
        "spans-lost",
        # Jaeger's query port speaks gRPC and knows no such call, which is an answer for good: nothing is tried again.
        Redeployed("collector", "INFERWATCH_JAEGER_ENDPOINT", port_of="jaeger-grpc"),
        # The next row loses spans, too, which do not fit into its queue, while this one recovers.
        fires=(
            Expected(alerts.SPANS_LOST, {"what": "could not be sent"}, recovers_seconds=WINDOW_AND_GROUP),
        ),
        stage="collector",
        engines=0,
    ),
    Row(
        "span-queue-filling",
        DeadBackend("sampler-http"),
        fires=(Expected(alerts.SPAN_QUEUE_FILLING),),
        # The queue may become full, which is a ticket (SpansLost) that this row neither demands nor forbids.
        stage="collector",
        engines=0,
        after=("spans-lost",),
    ),
    Row(
        "spans-refused",
        # So little memory that its limiter refuses whatever comes.
        Redeployed("collector", "INFERWATCH_COLLECTOR_MIB", "81"),
        fires=(Expected(alerts.SPANS_REFUSED, recovers_seconds=WINDOW_AND_GROUP),),
        stage="collector",
        engines=0,
        after=("spans-lost",),
    ),
    Row(
        "collector-down",
        Kill("collector"),
        # Of the two jobs only the one of span metrics has lost all of its targets: the second collector still runs.
        fires=(Expected(alerts.COLLECTOR_DOWN, {"job": "otel-collector-spans"}),),
        stage="collector",
        engines=0,
        after=("spans-refused",),
    ),
)
