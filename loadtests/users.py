"""Locust users that time streams truthfully. Import the class to run into a locustfile, or use ours.

Locust spawns and stops them and shows their numbers live; what is measured and kept is in our own records,
because Locust's response times are rounded and, for streams, stop at the headers.
"""

from typing import ClassVar

from locust import User, task
from locust.exception import StopUser

from loadtests.loadrun import LoadRun
from loadtests.plan import Endpoint


class InferenceUser(User):
    """A user of the plan's mix. Arrival decides how it behaves: one client of a closed loop, or the whole open loop."""

    abstract = True
    endpoint: ClassVar[Endpoint | None] = None

    @task
    def follow_the_plan(self) -> None:
        """Send requests until the plan is over, then stop."""
        run: LoadRun = self.environment.load_run
        run.ready.wait()
        slot = run.user_came()
        try:
            if run.plan.arrival.kind == "closed":
                run.driver.run_closed(slot, self.endpoint)
            elif slot == 0:
                run.driver.run_open(self.endpoint)
        finally:
            run.user_left()
        raise StopUser


class MixUser(InferenceUser):
    """Requests by the plan's mix of endpoints."""


class ChatUser(InferenceUser):
    """Chat completions only."""

    endpoint = "chat"


class CompletionUser(InferenceUser):
    """Completions only."""

    endpoint = "completions"


class EmbeddingUser(InferenceUser):
    """Embeddings only."""

    endpoint = "embeddings"


class RagUser(InferenceUser):
    """Questions to a RAG service only."""

    endpoint = "rag"
