"""Raw vectors of any shape -> the usable ones as float32, and how many were refused, by reason."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

MAX_DIMENSION = 65_536
MOST = 1e6  # beyond it a number is no embedding's, and its powers would leave float32


@dataclass(frozen=True)
class Checked:
    """Accepted vectors, shape (n, dimension), finite and not zero; and refusals by reason."""

    vectors: Floats
    rejected: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Batch:
    """Vectors of one answer or message; *vectors* as it came, see check()."""

    model: str
    version: str
    tenant: str
    vectors: object


def check(raw: object, dimension: int | None = None) -> Checked:
    """
    Sort vectors into usable and refused ones; never raises.

    *raw*: a 2-D array, or a list of lists of numbers that may be ragged. *dimension*: what is expected; when
    None, what most usable vectors of the batch have. Reasons: zero, nan, inf (or over a million), empty,
    dimension, malformed.
    """
    if isinstance(raw, np.ndarray) and raw.ndim == 2 and raw.dtype.kind in "fiu":
        return _array(raw, dimension)
    if isinstance(raw, np.ndarray) and raw.ndim == 1 and raw.dtype.kind in "fiu":
        return _array(raw[None, :], dimension)
    if not isinstance(raw, Sequence) or isinstance(raw, str | bytes):
        return _nothing(dimension, "malformed")
    if raw and all(type(one) in (int, float) for one in raw):
        raw = [raw]
    rejected: Counter[str] = Counter()
    rows: dict[int, list[Floats]] = {}
    for one in raw:
        row = _row(one)
        if isinstance(row, str):
            rejected[row] += 1
            continue
        if (reason := fault(row)) is not None:
            rejected[reason] += 1
            continue
        rows.setdefault(row.size, []).append(row)
    wanted = dimension
    if wanted is None and rows:
        wanted = max(rows, key=lambda size: len(rows[size]))
    for size, members in rows.items():
        if size != wanted:
            rejected["dimension"] += len(members)
    kept = rows.get(wanted or 0, [])
    return Checked(np.stack(kept) if kept else np.empty((0, wanted or 0), np.float32), rejected)


def _row(one: object) -> Floats | str:
    """One vector, or the reason why it is none."""
    if not isinstance(one, Sequence | np.ndarray) or isinstance(one, str | bytes):
        return "malformed"
    if len(one) == 0:
        return "empty"
    if len(one) > MAX_DIMENSION:
        return "dimension"
    try:
        with np.errstate(over="ignore"):
            row = np.asarray(one, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        return "malformed"
    return row if row.ndim == 1 else "malformed"


def fault(row: Floats) -> str | None:
    """Why a vector cannot be used: nan, inf, zero; None when it can."""
    if np.isnan(row).any():
        return "nan"
    if (np.abs(row) > MOST).any():
        return "inf"
    return None if row.any() else "zero"


def _array(raw: npt.NDArray[Any], dimension: int | None) -> Checked:
    count, size = raw.shape
    if size == 0:
        return Checked(np.empty((0, dimension or 0), np.float32), Counter({"empty": count} if count else {}))
    if size > MAX_DIMENSION or (dimension is not None and size != dimension):
        return Checked(np.empty((0, dimension or 0), np.float32), Counter({"dimension": count}))
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(raw, dtype=np.float32)
    nan = np.isnan(rows).any(axis=1)
    inf = ~nan & (np.abs(rows) > MOST).any(axis=1)
    zero = ~nan & ~inf & ~rows.any(axis=1)
    counts = {"nan": int(nan.sum()), "inf": int(inf.sum()), "zero": int(zero.sum())}
    rejected = Counter({reason: n for reason, n in counts.items() if n})
    return Checked(rows[~(nan | inf | zero)] if rejected else rows, rejected)


def _nothing(dimension: int | None, reason: str) -> Checked:
    return Checked(np.empty((0, dimension or 0), np.float32), Counter({reason: 1}))
