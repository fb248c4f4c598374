"""The stages `rag` and `collector`: ports, targets, a past, users that are switched, spans of a known size."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from inferwatch.scenarios import rag_spans, rag_stage
from inferwatch.scenarios.faults import Nothing
from inferwatch.scenarios.rag_faults import BadLink, OtherUsers, RagFault
from inferwatch.scenarios.rag_shape import Instance, Users
from inferwatch.scenarios.rag_users import QUESTIONS
from inferwatch.scenarios.row import Expected, Row
from inferwatch.scenarios.rows import ROWS
from inferwatch.scenarios.stage import Stage
from inferwatch.stack.errors import StackError
from inferwatch.stack.processes import Service
from inferwatch.stack.settings import default_settings
from slo import spec as slo_spec

PAIR = Row(
    "pair", Nothing(None), stage="rag", engines=0, rag=(Instance(), Instance("v2")), users=Users((0, 1), 2.0)
)


@pytest.fixture
def switched() -> Iterator[ThreadingHTTPServer]:
    """A server that keeps what it is told: method, path, body; it answers `status`."""

    class Handler(BaseHTTPRequestHandler):
        def _keep(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.server.told.append((self.command, self.path, json.loads(body)))  # type: ignore[attr-defined]  # below
            self.send_response(self.server.status)  # type: ignore[attr-defined]  # set below
            self.end_headers()

        do_POST = do_DELETE = _keep

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.told, server.status = [], 200  # type: ignore[attr-defined]  # what it keeps, what it answers
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def stage(tmp_path: Path, switched: ThreadingHTTPServer) -> Stage:
    """A stage whose services are all that server."""
    url = f"http://127.0.0.1:{switched.server_port}"
    names = ("pair-0", "pair-1", rag_stage.USERS, rag_stage.LINK)
    services = {name: Service(name, (), f"{url}/{name}", "/") for name in names}
    return Stage("rag", default_settings(run_dir=tmp_path), slo_spec.load(), (PAIR,), services, {})


def test_every_part_has_a_port_of_its_own_within_the_stage() -> None:
    """All rows of the matrix fit below the port where nobody listens."""
    own = default_settings(base_port=20000)
    used = rag_stage.ports([row for row in ROWS if row.stage == "rag"], own)
    assert len(set(used.values())) == len(used)
    assert min(used.values()) == 20200
    assert max(used.values()) < 20299


def test_instances_are_scraped_under_the_name_of_the_row(tmp_path: Path) -> None:
    """Both of them; three parts and two engines with their control ports come before."""
    own = default_settings(run_dir=tmp_path, base_port=20000)
    rag_stage.write_targets((PAIR,), own)
    assert json.loads(own.rag_file.read_text()) == [
        {"targets": ["127.0.0.1:20207", "127.0.0.1:20208"], "labels": {"service": "pair"}}
    ]


def test_the_fault_is_the_services_own_switch(stage: Stage, switched: ThreadingHTTPServer) -> None:
    """Set by POST and ended by DELETE, at the instance that it names."""
    fault = RagFault("rerank", {"fail_ratio": 0.5}, instance=1)
    fault.begin(stage, PAIR)
    fault.end(stage, PAIR)
    assert switched.told == [  # type: ignore[attr-defined]  # the server is ours
        ("POST", "/pair-1/faults", {"stage": "rerank", "fail_ratio": 0.5}),
        ("DELETE", "/pair-1/faults", {}),
    ]


def test_users_change_and_become_what_they_were(stage: Stage, switched: ThreadingHTTPServer) -> None:
    """First one of the two is asked, then both again at the row's rate."""
    fault = OtherUsers(Users((1,), fresh=True))
    fault.begin(stage, PAIR)
    fault.end(stage, PAIR)
    (_, path, during), (_, _, after) = switched.told  # type: ignore[attr-defined]  # the server is ours
    base = stage.services["pair-0"].url.removesuffix("/pair-0")
    assert path == "/rag-users/users"
    assert (during["pair"]["urls"], during["pair"]["fresh"]) == ([f"{base}/pair-1"], True)
    assert after["pair"]["urls"] == [f"{base}/pair-0", f"{base}/pair-1"]
    assert (after["pair"]["per_second"], after["pair"]["fresh"]) == (2.0, False)


def test_a_switch_that_refuses_is_said(stage: Stage, switched: ThreadingHTTPServer) -> None:
    """The row cannot go on without its fault."""
    switched.status = 400  # type: ignore[attr-defined]  # the server is ours
    with pytest.raises(StackError, match="answered HTTP 400"):
        BadLink(delay_seconds=0.1).begin(stage, PAIR)


def test_a_row_owns_its_service_and_what_has_none() -> None:
    """Another service's alert of the same name is not its own; one without a service is, where it is expected."""
    from inferwatch.loop.notices import Notice

    row = Row("far", Nothing(None), (Expected("NetworkSlow", {"model": "m"}),), stage="rag", engines=0)

    def notice(**labels: str) -> Notice:
        return Notice(received_at=1.0, alert="NetworkSlow", status="firing", labels=labels, summary="")

    assert row.owns(notice(service="far"))
    assert row.owns(notice(model="m"))
    assert not row.owns(notice(model="other"))
    assert not row.owns(notice(service="near", model="m"))


def test_spans_are_roots_of_the_size_that_was_asked_for() -> None:
    """Three traces; two attributes with names of 250 characters and one more."""
    request = ExportTraceServiceRequest.FromString(rag_spans.spans(3, 2))
    found = request.resource_spans[0].scope_spans[0].spans
    assert len({one.trace_id for one in found}) == 3
    assert {one.parent_span_id for one in found} == {b""}
    assert [len(one.key) for one in found[0].attributes] == [250, 251]


def test_twelve_questions_are_asked_over_and_over() -> None:
    """So that a cache soon knows them all."""
    assert len(set(QUESTIONS)) == 12
