"""The words after `up` choose what is watched; without words a running stack keeps its engine."""

import pytest

from inferwatch.stack import selection
from inferwatch.stack.errors import StackError
from inferwatch.stack.settings import Settings
from inferwatch.stack.state import Selection, State

RUNNING = State(19000, Selection("vllm-cpu", ("http://127.0.0.1:19000",), "llm"), {})


def test_no_words_on_a_fresh_checkout_is_the_simulated_engine(settings: Settings) -> None:
    """`up` alone needs no GPU, no model and no minutes."""
    chosen = selection.choose((), None, settings, State())

    assert chosen == Selection("sim", ("http://127.0.0.1:19000",), "llm")


def test_no_words_join_what_runs(settings: Settings) -> None:
    """A second `up` does not take the running engine away."""
    assert selection.choose((), None, settings, RUNNING) == RUNNING.selection


def test_words_change_the_engine(settings: Settings) -> None:
    """URLs may carry a slash at the end; it is not part of the target."""
    chosen = selection.choose(("http://127.0.0.1:8000/", "https://b"), "llm", settings, RUNNING)

    assert chosen == Selection("urls", ("http://127.0.0.1:8000", "https://b"), "llm")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("vlm-cpu",), "'vlm-cpu' is neither sim nor vllm-cpu nor a URL like http://127.0.0.1:8000"),
        (("ftp://host",), "neither sim nor vllm-cpu nor a URL"),
        (("http://host:99999",), "neither sim nor vllm-cpu nor a URL"),
        (("http://user:pw@host:1",), "scheme, host and port only"),
        (("http://host:1/metrics",), "scheme, host and port only"),
        (("sim", "http://host:1"), "sim stands alone; leave out http://host:1"),
        (("http://host:1", "http://host:1/"), "http://host:1 stands twice"),
    ],
)
def test_words_that_mean_nothing_are_refused(settings: Settings, words: tuple[str, ...], says: str) -> None:
    """Each wrong word is named with what to write instead."""
    with pytest.raises(StackError, match=says):
        selection.choose(words, None, settings, State())
