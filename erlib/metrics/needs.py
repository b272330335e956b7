"""What could these runs have found, and what would decide an open claim? (metrics.md §13.10)"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from scipy.optimize import brentq

from erlib.metrics.estimates import Estimate, Mean
from erlib.metrics.rules import EQUIVALENT, POWER, SIDED, Question

MOST = 200  # seeds, and as many times the texts; what needs more needs something else


@dataclass(frozen=True)
class Need:
    """Seeds and texts with which the present estimate, if it were true, would be decided."""

    seeds: int
    texts: int


def detectable(question: Question, estimate: Mean) -> float:
    """The distance from the null that is found with 80 % power, at this n and spread.

    Of an effect; or, of a claim that there is none, the margin that could be met if there is none.
    """
    level = SIDED if question.sided else EQUIVALENT
    both = question.low is not None and question.high is not None and not question.sided
    power = (1 + POWER) / 2 if both else POWER  # two tests have to succeed
    unit = estimate.variance**0.5

    def lacking(distance: float) -> float:
        return replace(estimate, mean=distance * unit).power(0.0, 1, level) - power

    return float(brentq(lacking, 0.0, 1e3, xtol=1e-6)) * unit


def needed(question: Question, estimate: Estimate) -> Need | None:
    """The fewest seeds and texts for a verdict with 80 % power; None where no number would do.

    More texts first where they make most of the variance, else more seeds; both, where one alone
    cannot do it.
    """
    seeds, texts = estimate.seeds, getattr(estimate, "texts", 0)
    by_seeds = _fewest(lambda n: chance(question, estimate.at(n, texts)), seeds)
    if not isinstance(estimate, Mean) or estimate.text_variance == 0:
        return Need(by_seeds, texts) if by_seeds else None
    by_texts = _fewest(lambda n: chance(question, estimate.at(seeds, n)), texts, MOST * texts)
    if by_texts and estimate.of_texts > 0.5:
        return Need(seeds, by_texts)
    if by_seeds:
        return Need(by_seeds, texts)
    if by_texts:
        return Need(seeds, by_texts)
    times = _fewest(lambda k: chance(question, estimate.at(k * seeds, k * texts)), 1, MOST // seeds)
    return Need(times * seeds, times * texts) if times else None


def chance(question: Question, estimate: Estimate) -> float:
    """Of any verdict that decides, if the estimate is the truth."""
    side = 1 if estimate.mean > question.null else -1
    inside = _inside(question, estimate)
    if question.sided or question.rule == "CORR":
        return max(inside, estimate.power(question.null, side, SIDED))
    beyond = [
        estimate.power(bound, out, SIDED)
        for bound, out in ((question.low, -1), (question.high, 1))
        if bound is not None
    ]
    return max(inside, *beyond)


def _inside(question: Question, estimate: Estimate) -> float:
    bounds = [(b, s) for b, s in ((question.low, 1), (question.high, -1)) if b is not None]
    if not bounds:
        return 0.0
    missed = sum(1 - estimate.power(bound, side, EQUIVALENT) for bound, side in bounds)
    return max(0.0, 1 - missed)


def _fewest(power: Callable[[int], float], low: int, high: int = MOST) -> int | None:
    """The smallest number above `low` with enough power, which grows with the number."""
    if high <= low or power(high) < POWER:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high
