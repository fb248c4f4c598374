"""Edited answers of a recorded H200, read back by the agent's own reader of recordings."""

import json

import pytest

from exporters.node.nvml import GPU_IS_LOST, NvmlError
from exporters.node.recorded import RecordedNvml
from inferwatch.scenarios import card
from inferwatch.scenarios.shown import Card


def nvml(**cards: Card) -> RecordedNvml:
    """A node with these cards."""
    return RecordedNvml(json.loads(card.document(cards)))


def test_a_well_card_answers_as_recorded() -> None:
    """Idle, 150,109,880,320 bytes free, no error; under the name of its row."""
    found = nvml(calm=Card())
    assert found.call("nvmlDeviceGetCount") == 1
    assert found.call("nvmlDeviceGetUUID", (0,)) == "GPU-calm"
    assert found.call("nvmlDeviceGetMemoryInfo", (0,))["free"] == 150_109_880_320
    assert found.call("nvmlDeviceGetTotalEccErrors", (0,), 1, 0) == 0
    assert found.gpm_values(0)[2] == 0.0


def test_every_edit_reaches_its_call() -> None:
    """ECC, remapping, clocks, activity, memory: of 150,109,880,320 usable bytes half are used."""
    sick = Card("memory", 0.25, 0.5, 0x40, uncorrected=3, remap_pending=True, xid=79)
    found = nvml(one=Card(), two=sick)
    assert found.call("nvmlDeviceGetTotalEccErrors", (1,), 1, 0) == 3
    assert found.call("nvmlDeviceGetRemappedRows", (1,)) == [0, 1, 1, 0]
    assert found.call("nvmlDeviceGetCurrentClocksEventReasons", (1,)) == 0x40
    assert found.gpm_values(1)[2] == 25.0
    assert found.gpm_values(1)[10] == pytest.approx(88.5618)
    assert found.call("nvmlDeviceGetMemoryInfo", (1,))["free"] == 75_054_940_160
    assert found.due_xids() == [("GPU-two", 0, 79)]


def test_the_twin_is_lost_and_the_card_is_not() -> None:
    """Both are counted; one answers."""
    found = nvml(pair=Card(twin=True, lost=True))
    assert found.call("nvmlDeviceGetCount") == 2
    assert found.call("nvmlDeviceGetHandleByIndex", 0) == (0,)
    with pytest.raises(NvmlError) as lost:
        found.call("nvmlDeviceGetHandleByIndex", 1)
    assert lost.value.code == GPU_IS_LOST


def test_nothing_opens_with_another_driver() -> None:
    """The whole library refuses."""
    with pytest.raises(NvmlError, match="mismatch"):
        nvml(any=Card(driver_mismatch=True)).open()
