"""Cards of the rows -> a recording of NVML that the node agent answers from: a real H200's, edited."""

import copy
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from inferwatch.scenarios.shown import Card, uuid

RECORDED = Path(__file__).parent / "recordings" / "h200.json"
LOST = {"raise": "NVML_ERROR_GPU_IS_LOST"}
MISMATCH = {"raise": "NVML_ERROR_LIB_RM_VERSION_MISMATCH"}
SM_ACTIVE, GRAPHICS_ACTIVE = "2", "1"
CALL = "nvmlDeviceGet"


@cache
def _recorded() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return document


def document(cards: Mapping[str, Card]) -> str:
    """Return the recording (JSON) of a node with one GPU a row, in this order, or two."""
    devices: list[dict[str, Any]] = []
    for row, card in cards.items():
        devices.append(_device(card, uuid(row), len(devices)))
        if card.twin:
            devices.append(_twin(card, row, len(devices)))
    made: dict[str, Any] = {"about": f"edited: {_recorded()['about']}", "driver": _recorded()["driver"]}
    made["devices"] = devices
    if any(card.driver_mismatch for card in cards.values()):
        made["open"] = MISMATCH
    return json.dumps(made)


def _twin(card: Card, row: str, index: int) -> dict[str, Any]:
    """The GPU beside a row's own: idle, or gone."""
    made = _device(Card(), f"{uuid(row)}-2", index)
    if not card.lost:
        return made
    calls = dict.fromkeys(made["calls"], LOST) | {f"{CALL}UUID": made["calls"][f"{CALL}UUID"]}
    return {**made, "handle": LOST, "calls": calls}


def _device(card: Card, name: str, index: int) -> dict[str, Any]:
    frame = next(one for one in _recorded()["frames"] if one["phase"] == card.frame)
    made: dict[str, Any] = copy.deepcopy(frame["devices"][0])
    calls = made["calls"]
    made["index"] = index
    calls[f"{CALL}UUID"] = {"return": name}
    calls[f"{CALL}PciInfo"]["return"] |= {"bus": index + 1, "busId": f"00000000:{index + 1:02X}:00.0"}
    calls[f"{CALL}TotalEccErrors:1:0"] = {"return": card.uncorrected}
    remapped = int(card.remap_pending or card.remap_failed)
    calls[f"{CALL}RemappedRows"] = {"return": [0, remapped, int(card.remap_pending), int(card.remap_failed)]}
    if card.active is not None:
        made["gpm"] |= {SM_ACTIVE: 100 * card.active, GRAPHICS_ACTIVE: 100 * card.active}
        calls[f"{CALL}UtilizationRates"]["return"]["gpu"] = round(100 * card.active)
    if card.memory_used is not None:
        _fill(calls, card.memory_used)
    if card.clock_events is not None:
        for reasons in ("Event", "Throttle"):
            calls[f"{CALL}CurrentClocks{reasons}Reasons"] = {"return": card.clock_events}
    if card.xid:
        made["xids"] = [[0, card.xid]]
    if card.driver_mismatch:
        made["calls"] = dict.fromkeys(calls, MISMATCH)
        made["handle"] = MISMATCH
    return made


def _fill(calls: dict[str, Any], used_ratio: float) -> None:
    """Both of NVML's memory calls: the older one counts what is reserved as used."""
    info = calls[f"{CALL}MemoryInfo_v2"]["return"]
    usable = info["used"] + info["free"]
    info["used"] = round(usable * used_ratio)
    info["free"] = usable - info["used"]
    calls[f"{CALL}MemoryInfo"]["return"] |= {"free": info["free"], "used": info["total"] - info["free"]}
