"""The locustfile of `inferwatch load`: `python -m locust -f loadtests/locustfile.py --headless --plan P --records D MixUser`."""

import signal
from pathlib import Path
from typing import Any

import locust

from loadtests.exits import NOT_OVER
from loadtests.loadrun import LoadRun
from loadtests.users import ChatUser, CompletionUser, EmbeddingUser, MixUser, RagUser

__all__ = ["ChatUser", "CompletionUser", "EmbeddingUser", "MixUser", "RagUser"]


def _options(parser: Any) -> None:
    parser.add_argument("--plan", help="plan file (JSON), see loadtests/plan.py; a worker has its master's")
    parser.add_argument("--records", required=True, help="folder that records are written to")
    parser.add_argument("--send-records", action="store_true", help="as a worker: the master gets them too")


def _bind(environment: Any, **_: Any) -> None:
    options = environment.parsed_options
    if options.plan:
        options.plan_text = Path(options.plan).read_text(encoding="utf-8")
    run = LoadRun(environment, Path(options.records), sends=options.send_records)
    environment.load_run = run
    environment.process_exit_code = NOT_OVER  # until it is; failed requests are findings, not a failed run
    run.listen()


# A shell starts what it puts into the background with SIGINT ignored; a run must end by it there, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
_events: Any = locust.events  # its listeners are untyped
_events.init_command_line_parser.add_listener(_options)
_events.init.add_listener(_bind)
