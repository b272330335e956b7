"""On which scale are numbers compared? (metrics.md §13.2)

On the logit a share has no end that an interval could run over, on Fisher's z a correlation none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

NEAREST = 1e-9  # to ±1 of a correlation: what is equal by construction has no Fisher's z


@dataclass(frozen=True)
class Scale:
    """A metric's unit → scale and back; `share`: 1 or 100 where the unit is a share, else 0.

    `forward` is strict; `of` keeps a value that was measured off the ends of its range.
    """

    name: str
    forward: Callable[[float], float]
    back: Callable[[float], float]
    slope: Callable[[float], float]  # of `forward`
    share: float = 0.0

    def of(self, value: float, texts: int = 0) -> float:
        """The value on the scale; a share of so many texts as (x + ½)/(N + 1).

        >>> round(SCALES["logit"].of(1.0, texts=10), 3)
        3.045
        """
        return self.forward(self._shrunk(value, texts))

    def slope_at(self, value: float, texts: int = 0) -> float:
        """How far the scale moves for a small change of the value."""
        by = texts / (texts + 1) if self.share and texts else 1.0
        return by * self.slope(self._shrunk(value, texts))

    def _shrunk(self, value: float, texts: int) -> float:
        if self.share and texts:
            return (value * texts + self.share / 2) / (texts + 1)
        if self.name == "fisher-z":
            return max(-1 + NEAREST, min(1 - NEAREST, value))
        return value


def _logit(whole: float) -> Scale:
    return Scale(
        "logit" if whole == 1 else "logit-percent",
        forward=lambda x: math.log(x / (whole - x)),
        back=lambda y: whole / (1 + math.exp(-y)),
        slope=lambda x: whole / (x * (whole - x)),
        share=whole,
    )


SCALES = {
    scale.name: scale
    for scale in (
        Scale("identity", float, float, lambda x: 1.0),
        _logit(1),
        _logit(100),
        Scale("fisher-z", math.atanh, math.tanh, lambda r: 1 / (1 - r**2)),
        Scale("log", math.log, math.exp, lambda x: 1 / x),
    )
}
