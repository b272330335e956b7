"""Which verdict do an estimate and a claim's question give? (metrics.md §13.4 to 13.10)

A part is decided by up to three one-sided tests: for the claim, against it, and that nothing of
size is there. `join` makes the parts of a claim one verdict. Nothing else decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from erlib.metrics.estimates import Estimate
from erlib.metrics.stats import holm

VERSION = 1  # raised whenever the same numbers give another verdict
Word = Literal[
    "holds", "holds (direction)", "no difference", "fails",
    "leans with", "leans against", "open", "not attempted",
]  # fmt: skip
WORDS: tuple[Word, ...] = (
    "holds", "holds (direction)", "leans with", "open", "leans against", "no difference", "fails",
    "not attempted",
)  # fmt: skip
DECIDED: tuple[Word, ...] = ("holds", "holds (direction)", "no difference", "fails")

SIDED, EQUIVALENT, LEANS = 0.025, 0.05, 0.10  # levels, each of one side
ENOUGH, NEGLIGIBLE = 1 / 2, 1 / 4  # of what is asked
POWER = 0.80


@dataclass(frozen=True)
class Question:
    """What a contrast asks, on its scale.

    `asked` is the effect wanted, None where the side alone decides. `low` and `high` are the bounds
    of NIL, NONINFERIOR and CORR, or of *no difference*; None where there are none.
    """

    rule: str
    side: int = 0
    asked: float | None = None
    low: float | None = None
    high: float | None = None
    null: float = 0.0

    @property
    def sided(self) -> bool:
        """Is an effect claimed (PAIR, SPREAD, SHARE), and not its absence?"""
        return self.rule in ("PAIR", "SPREAD", "SHARE")

    @property
    def level(self) -> float:
        """Of the test for the claim; its two-sided interval has 1 − 2 · level."""
        return SIDED if self.sided else EQUIVALENT


@dataclass(frozen=True)
class Outcome:
    """The verdict of a part, and the p of each test; 1 for a test that the rule does not have."""

    word: Word
    claimed: float = 1.0
    against: float = 1.0
    nil: float = 1.0
    decides: bool = True  # False: not attempted


NOT_ATTEMPTED = Outcome("not attempted", decides=False)


def effect(
    side: int, asked: float | None = None, *, rule: str = "PAIR", null: float = 0.0
) -> Question:
    """The question of a sided effect; *no difference* is within a quarter of what is asked."""
    if not asked:
        return Question(rule, side, asked, null=null)
    nil = abs(asked) * NEGLIGIBLE
    return Question(rule, side, asked, null - nil, null + nil, null)


def decide(question: Question, estimate: Estimate) -> Outcome:
    """The part's own verdict, every test at its full level."""
    claimed, against, nil = _claimed(question, estimate), _against(question, estimate), 1.0
    if question.sided and question.low is not None:
        nil = _inside(question, estimate)
    word: Word = "open"
    if nil < EQUIVALENT:
        word = "no difference"
    elif claimed < question.level:
        word = "holds" if _enough(question, estimate) else "holds (direction)"
    elif against < SIDED:
        word = "fails"
    elif claimed < LEANS:
        word = "leans with"
    elif against < LEANS:
        word = "leans against"
    return Outcome(word, claimed, against, nil)


def _enough(question: Question, estimate: Estimate) -> bool:
    if not question.sided or not question.asked:
        return True
    return question.side * (estimate.mean - question.null) >= ENOUGH * abs(question.asked)


def _claimed(question: Question, estimate: Estimate) -> float:
    if question.sided:
        return _beyond(estimate, question.null, question.side)
    return _inside(question, estimate)


def _against(question: Question, estimate: Estimate) -> float:
    if question.sided:
        return _beyond(estimate, question.null, -question.side)
    if question.rule == "CORR":  # a relation, however small
        return min(estimate.above(question.null), estimate.below(question.null))
    under = estimate.below(question.low) if question.low is not None else 1.0
    over = estimate.above(question.high) if question.high is not None else 1.0
    return min(under, over)


def _beyond(estimate: Estimate, value: float, side: int) -> float:
    return estimate.above(value) if side > 0 else estimate.below(value)


def _inside(question: Question, estimate: Estimate) -> float:
    over = estimate.above(question.low) if question.low is not None else 0.0
    under = estimate.below(question.high) if question.high is not None else 0.0
    return max(over, under)


@dataclass(frozen=True)
class Joined:
    """A claim's verdict, and the index of the part whose numbers stand for it."""

    word: Word
    part: int | None
    measured: int


def join(parts: Sequence[Outcome]) -> Joined:
    """One verdict from all parts that a claim names, also those not attempted (metrics.md §13.7).

    For the claim every part at its own level: intersection–union. Against it any part, at Holm's.
    """
    tried = [i for i, part in enumerate(parts) if part.decides]
    count = len(tried)
    if not tried or 2 * count < len(parts):
        return Joined("not attempted", None, count)
    words = {parts[i].word for i in tried}
    weakest = max(tried, key=lambda i: parts[i].claimed)
    strongest = min(tried, key=lambda i: parts[i].against)
    least = min(tried, key=lambda i: parts[i].nil)
    against = holm([parts[i].against for i in tried]).min()
    nil = holm([parts[i].nil for i in tried]).min()
    if words <= {"holds", "holds (direction)"}:
        smaller = [i for i in tried if parts[i].word != "holds"] or tried
        of = max(smaller, key=lambda i: parts[i].claimed)
        return Joined("holds" if words == {"holds"} else "holds (direction)", of, count)
    if against < SIDED:
        return Joined("fails", strongest, count)
    if nil < EQUIVALENT:
        return Joined("no difference", least, count)
    if against < LEANS:
        return Joined("leans against", strongest, count)
    if words <= {"holds", "holds (direction)", "leans with"}:
        return Joined("leans with", weakest, count)
    return Joined("open", weakest, count)
