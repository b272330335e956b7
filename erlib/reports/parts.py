"""What was found of one contrast, in the paper's unit? (metrics.md §13.2)"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy.special import expit

from erlib.metrics.estimates import Estimate, Evidence, Mean
from erlib.metrics.needs import Need, detectable, needed
from erlib.metrics.rules import NOT_ATTEMPTED, Outcome, Question
from erlib.metrics.scales import SCALES
from erlib.metrics.stats import Interval
from erlib.reports.criteria import Contrast

Kind = Literal["difference", "ratio", "share", "correlation"]
UNDECIDED = ("leans with", "leans against", "open")


@dataclass(frozen=True)
class Part:
    """A contrast with what was measured of it; `why` says why it was not attempted.

    `base` is the mean of what it is compared with, in the metric's unit; `cells` are the mean
    differences of the cells that are measured, of the `named`; `capped`: what is asked is what
    explanation loss alone gains, and not the paper's effect.
    """

    contrast: Contrast
    tested: Outcome = NOT_ATTEMPTED
    question: Question | None = None
    estimate: Estimate | None = None
    evidence: Evidence | None = None
    base: float = math.nan
    cells: tuple[float, ...] = ()
    texts: int = 0
    untrained: int = 0
    capped: bool = False
    unit: str = "seed"
    why: str = ""

    @property
    def name(self) -> str:
        return self.contrast.name

    @property
    def named(self) -> int:
        """How many cells the contrast is the mean of."""
        return len(self.contrast.differences)

    @property
    def seeds(self) -> int:
        return self.estimate.seeds if self.estimate else 0

    @property
    def kind(self) -> Kind:
        """What its numbers are, as they are printed."""
        if self.contrast.rule == "SHARE":
            return "share"
        if self.contrast.rule == "CORR":
            return "correlation"
        return "ratio" if self.contrast.scale == "log" else "difference"

    @property
    def null(self) -> float:
        """What stands for no effect, as printed."""
        if self.kind == "share":
            return self.contrast.level or 0.0
        return 1.0 if self.kind == "ratio" else 0.0

    def printed(self, value: float) -> float:
        """A value on the scale as a reader meets it.

        A difference is brought back at the mean of what it is compared with: 0.3 on Fisher's z is
        so much of r above the Baseline's r.
        """
        if self.kind == "share":
            return float(expit(value))
        if self.kind == "correlation":
            return math.tanh(value)
        if self.kind == "ratio":
            return math.exp(value) if value < 700 else math.inf
        if self.contrast.scale == "identity" or math.isnan(self.base):
            return value
        scale = SCALES[self.contrast.scale]
        return scale.back(scale.of(self.base) + value) - self.base

    @property
    def ours(self) -> float:
        return self.printed(self.estimate.mean) if self.estimate else math.nan

    @property
    def paper(self) -> float:
        """The paper's effect, at our Baseline's mean; NaN where it prints none."""
        asked = self.contrast.asked
        if asked is None:
            return math.nan
        return self.printed(asked + self._level if self.kind == "share" else asked)

    @property
    def _level(self) -> float:
        return SCALES[self.contrast.scale].of(self.contrast.level or 0.5)

    def interval(self, confidence: float | None = None) -> Interval:
        """As printed; of the confidence by which the rule decides, if none is given."""
        if self.estimate is None:
            return Interval(math.nan, math.nan)
        found = self.estimate.interval(confidence or self.confidence)
        return Interval(self.printed(found.low), self.printed(found.high))

    @property
    def confidence(self) -> float:
        """95 % for an effect, 90 % for its absence."""
        return 1 - 2 * self.question.level if self.question else 0.95

    @property
    def on_side(self) -> int:
        """How many of its cells lie on the claimed side."""
        side = self.contrast.side or 0
        return sum(side * cell > 0 for cell in self.cells)

    @property
    def undecided(self) -> bool:
        return self.tested.word in UNDECIDED

    @property
    def detectable(self) -> float:
        """The effect found with 80 % power, from the null and on the claimed side, as printed."""
        if not isinstance(self.estimate, Mean) or self.question is None:
            return math.nan
        side = self.contrast.side or 1
        if self.contrast.rule == "NONINFERIOR":
            side = -side  # the margin that could be met lies on the other side
        return self.printed(side * detectable(self.question, self.estimate))

    @property
    def needs(self) -> Need | None:
        """What would decide it, if the present estimate were the truth."""
        if self.question is None or self.estimate is None:
            return None
        return needed(self.question, self.estimate)
