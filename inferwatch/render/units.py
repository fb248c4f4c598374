"""A number and a Grafana unit -> the few characters a reader sees ("0.25", "s" -> "250 ms")."""

import math

_TIMES = (
    (86_400.0, "d"),
    (3_600.0, "h"),
    (60.0, "min"),
    (1.0, "s"),
    (1e-3, "ms"),
    (1e-6, "µs"),
    (1e-9, "ns"),
)
_COUNTS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BYTES = ((2.0**40, " TiB"), (2.0**30, " GiB"), (2.0**20, " MiB"), (2.0**10, " KiB"), (1.0, " B"))
_SUFFIXES = {"reqps": " req/s", "cps": " /s", "ops": " ops/s", "watt": " W", "celsius": " °C"}


def show(value: float, unit: str = "short", decimals: int | None = None) -> str:
    """Return the value with its unit, three significant digits unless *decimals* says otherwise.

    NaN is "n/a": unknown is never shown as a number.
    """
    if math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if unit == "percentunit":
        return f"{_digits(value * 100, decimals)} %"
    if unit in {"s", "ms"}:
        return _scaled(value / (1e3 if unit == "ms" else 1), _TIMES, decimals, space=" ")
    if unit == "bytes":
        return _scaled(value, _BYTES, decimals)
    if unit == "none":
        return _digits(value, decimals)
    return _scaled(value, _COUNTS, decimals, space=" ") + _SUFFIXES.get(unit, "")


def _scaled(value: float, scale: tuple[tuple[float, str], ...], decimals: int | None, space: str = "") -> str:
    if value == 0:
        return "0" + (scale[-1][1] if space == "" else "")
    size, name = next(((s, n) for s, n in scale if abs(value) >= s * 0.9995), scale[-1])
    if scale is _COUNTS and size == 1:
        return _digits(value, decimals)
    if scale is _TIMES and size == 60 and abs(value) < 120 and value % 60:
        size, name = 1.0, "s"
    return f"{_digits(value / size, decimals)}{space if name else ''}{name}"


def _digits(value: float, decimals: int | None) -> str:
    if decimals is not None:
        return f"{value:.{decimals}f}"
    if value == 0:
        return "0"
    places = max(0, min(9, 2 - math.floor(math.log10(abs(value)))))
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
