"""A short text such as "lognormal:200:0.6:2048" -> a distribution of token counts."""

import math
import random
from dataclasses import dataclass
from typing import Literal

MOST_TOKENS = 10_000_000
"""More than any engine takes; a slip of the pen must not fill the memory with one prompt."""

MOST_SIGMA = 10.0
"""A spread from a thousandth to thousands of times the median is one of 3."""

_FORMS = "N, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA:MAX or choice:N,N,…"


@dataclass(frozen=True, slots=True)
class Lengths:
    """A distribution of token counts, each from 1 to MOST_TOKENS.

    constant: values = (n,); uniform: values = (low, high), both included; choice: equally likely values;
    lognormal: values = (median, sigma of the logarithm, largest), larger draws are cut to the largest.
    """

    kind: Literal["constant", "uniform", "lognormal", "choice"]
    values: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> "Lengths":
        """Read one of: N, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA:MAX, choice:N,N; raises ValueError."""
        kind, _, rest = text.strip().partition(":")
        try:
            if not rest:
                made = cls("constant", (float(int(kind)),))
            elif kind == "choice":
                made = cls("choice", tuple(float(int(part)) for part in rest.split(",")))
            elif kind == "uniform":
                low, high = map(int, rest.split(":"))
                made = cls("uniform", (float(low), float(high)))
            elif kind == "lognormal":
                median, sigma, largest = map(float, rest.split(":"))
                made = cls("lognormal", (median, sigma, largest))
            else:
                raise ValueError(f"unknown form {kind!r}")
        except (ValueError, OverflowError) as error:
            raise ValueError(f"lengths {text!r}: {error}; write {_FORMS}") from error
        made.check()
        return made

    def check(self) -> None:
        """Raise ValueError unless every draw is a whole number from 1 to MOST_TOKENS."""
        values = self.values
        wanted = {"constant": 1, "uniform": 2, "lognormal": 3}.get(self.kind, len(values) or 1)
        smallest_index = 0
        if len(values) != wanted or values[smallest_index] < 1 or not all(map(math.isfinite, values)):
            raise ValueError(f"lengths {self}: counts start at 1; write {_FORMS}")
        if self.kind == "uniform" and values[1] < values[0]:
            raise ValueError(f"lengths {self}: the upper end is below the lower end")
        if self.kind == "lognormal" and (not 0 <= values[1] <= MOST_SIGMA or values[2] < values[0]):
            raise ValueError(
                f"lengths {self}: sigma is from 0 to {MOST_SIGMA:g} and the largest at least the median"
            )
        if self.kind == "choice" and min(values) < 1:
            raise ValueError(f"lengths {self}: counts start at 1")
        counts = values[:1] + values[2:] if self.kind == "lognormal" else values
        if max(counts) > MOST_TOKENS:
            raise ValueError(f"lengths {self}: counts end at {MOST_TOKENS}")

    def draw(self, rng: random.Random) -> int:
        """One token count."""
        values = self.values
        if self.kind == "constant":
            return int(values[0])
        if self.kind == "uniform":
            return rng.randint(int(values[0]), int(values[1]))
        if self.kind == "choice":
            return int(values[int(rng.random() * len(values))])
        drawn = values[0] * math.exp(rng.gauss(0.0, values[1]))
        return max(1, min(int(values[2]), round(drawn)))

    def __str__(self) -> str:
        parts = [f"{value:.0f}" if value.is_integer() else repr(value) for value in self.values]
        if self.kind == "constant":
            return parts[0]
        return f"{self.kind}:{','.join(parts) if self.kind == 'choice' else ':'.join(parts)}"
