"""The state file holds what `up` did, and a damaged one is said, never guessed."""

from pathlib import Path

import pytest

from inferwatch.stack import state
from inferwatch.stack.errors import StackError
from inferwatch.stack.state import Record, Selection, State


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    """A state survives the disk."""
    record = Record("prometheus", 7, 1.5, "http://127.0.0.1:19090", "/-/ready", "/l", "c", "f")
    known = State(19000, Selection("sim", ("http://127.0.0.1:19000",), "llm"), {"prometheus": record})
    state.save(tmp_path / "run" / "state.json", known)

    assert state.load(tmp_path / "run" / "state.json") == known


def test_no_file_is_an_empty_state(tmp_path: Path) -> None:
    """Before the first `up` nothing is known."""
    assert state.load(tmp_path / "state.json") == State()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"services": []}', '{"base_port": 1, "selection": {}, "services": [{}]}']
)
def test_a_damaged_file_is_an_error_with_its_mend(tmp_path: Path, text: str) -> None:
    """A file that is not ours or was cut off names itself and what to do."""
    path = tmp_path / "state.json"
    path.write_text(text)

    with pytest.raises(StackError, match=r"state\.json is damaged .*then remove it"):
        state.load(path)
