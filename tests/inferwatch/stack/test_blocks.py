"""What promtool is given for a history, block by block."""

from pathlib import Path

import pytest

from inferwatch.stack.blocks import ConstantSeries, write_blocks
from inferwatch.stack.errors import StackError

# 27778 × 18 h is 1,800,014,400: a block begins there.
EDGE = 1_800_014_400


@pytest.fixture
def recorder(tmp_path: Path) -> Path:
    """A stand-in for promtool that keeps each input under inputs/."""
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    script = tmp_path / "promtool"
    script.write_text(
        f'#!/bin/sh\nfor a; do case "$a" in *.om) cp "$a" "{inputs}/$(ls {inputs} | wc -l)";; esac; done\n'
    )
    script.chmod(0o755)
    return script


def test_each_block_gets_only_its_own_samples(tmp_path: Path, recorder: Path) -> None:
    """Four samples around a block's edge, 20 s apart: two before it, two after."""
    series = ConstantSeries("a:b:rate", {"service": "llm"}, 2.5, EDGE - 40, EDGE + 40, 20)
    assert series.samples() == 4
    assert write_blocks([series], tmp_path / "data", recorder) == 2
    assert (tmp_path / "inputs" / "0").read_text().splitlines() == [
        f'a:b:rate{{service="llm"}} 2.5 {EDGE - 40}',
        f'a:b:rate{{service="llm"}} 2.5 {EDGE - 20}',
        "# EOF",
    ]
    assert (tmp_path / "inputs" / "1").read_text().splitlines() == [
        f'a:b:rate{{service="llm"}} 2.5 {EDGE}',
        f'a:b:rate{{service="llm"}} 2.5 {EDGE + 20}',
        "# EOF",
    ]


def test_steps_go_on_across_a_block_they_do_not_divide(tmp_path: Path, recorder: Path) -> None:
    """Begun 30 s before the edge in steps of 20 s: the first sample after it is at +10 s."""
    write_blocks([ConstantSeries("a", {}, 0, EDGE - 30, EDGE + 31, 20)], tmp_path / "data", recorder)
    times = [line.split()[-1] for line in (tmp_path / "inputs" / "1").read_text().splitlines()]
    assert times == [str(EDGE + 10), str(EDGE + 30), "EOF"]


def test_label_values_are_escaped(tmp_path: Path, recorder: Path) -> None:
    """A model may be a path, with whatever people put into paths."""
    labels = {"model": 'C:\\m "x"\ny'}
    write_blocks([ConstantSeries("a", labels, 1, EDGE, EDGE + 1, 1)], tmp_path / "data", recorder)
    (line, _) = (tmp_path / "inputs" / "0").read_text().splitlines()
    assert line == 'a{model="C:\\\\m \\"x\\"\\ny"} 1 1800014400'


def test_a_directory_with_data_is_refused(tmp_path: Path, recorder: Path) -> None:
    """Made-up history is never put beside real history."""
    (tmp_path / "data" / "wal").mkdir(parents=True)
    with pytest.raises(StackError, match=r"already holds data \(wal\).*remove it or name another"):
        write_blocks([ConstantSeries("a", {}, 0, EDGE, EDGE + 1, 1)], tmp_path / "data", recorder)


def test_what_promtool_says_is_told(tmp_path: Path) -> None:
    """A refusal carries promtool's own words; a missing promtool its path."""
    series = [ConstantSeries("a", {}, 0, EDGE, EDGE + 1, 1)]
    refusing = tmp_path / "promtool"
    refusing.write_text("#!/bin/sh\necho 'disk is full' >&2\nexit 1\n")
    refusing.chmod(0o755)
    with pytest.raises(StackError, match="disk is full"):
        write_blocks(series, tmp_path / "one", refusing)
    with pytest.raises(StackError, match="no-such-promtool"):
        write_blocks(series, tmp_path / "two", tmp_path / "no-such-promtool")
