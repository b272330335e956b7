"""Which intervals and p-values stand behind a claim? (metrics.md §13)

The unit is the seed: systems share seed, data order and initialisation, so differences are paired.
The verdicts that follow from such numbers are made by `erlib.metrics.rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats = NDArray[np.float64]
EXACT_SEEDS = 15  # 2^15 sign patterns are listed; beyond that they are sampled
EXACT_TEXTS = 13  # of the signed-rank test, as in scipy
RESAMPLES = 5_000


@dataclass(frozen=True)
class Interval:
    """A closed interval; NaN at both ends where there is none."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high

    def inside(self, bound: float) -> bool:
        """Entirely within ±bound."""
        return -bound < self.low and self.high < bound

    def hull(self, other: Interval) -> Interval:
        """The smallest interval with both in it: what it supports, both support."""
        return Interval(min(self.low, other.low), max(self.high, other.high))


NOWHERE = Interval(float("nan"), float("nan"))


def vector(values: ArrayLike, name: str) -> Floats:
    """The values as a finite, non-empty float vector, or an error that names them."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be a non-empty vector, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has values that are not finite: drop lost seeds before testing")
    return array


def t_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """Student's interval of the mean; NaN for one value, which has no spread."""
    x = vector(values, "values")
    if x.size < 2:
        return NOWHERE
    half = stats.t.ppf((1 + confidence) / 2, x.size - 1) * x.std(ddof=1) / np.sqrt(x.size)
    return Interval(float(x.mean() - half), float(x.mean() + half))


def sign_flip_p(differences: ArrayLike, *, seed: int = 0) -> float:
    """Two-sided permutation p of mean difference 0, flipping each seed's sign.

    Exact (all 2^n patterns) up to 15 seeds; beyond, (1 + hits) / (1 + draws), never 0.
    """
    d = vector(differences, "differences")
    if d.size <= EXACT_SEEDS:
        patterns = _sign_patterns(d.size)
        hits, draws = 0, 2**d.size
    else:
        patterns = np.random.default_rng(seed).integers(0, 2, size=(RESAMPLES, d.size))
        hits, draws = 1, RESAMPLES + 1
    sums = np.abs((1 - 2 * patterns) @ d)
    observed = abs(d.sum())
    # The same sum in another order differs in its last bits and must still count as equal.
    hits += int((sums >= observed - 1e-12 * np.abs(d).sum()).sum())
    return float(hits / draws)


def signed_rank_p(
    differences: ArrayLike, alternative: Literal["two-sided", "greater", "less"] = "two-sided"
) -> float:
    """Wilcoxon's signed-rank p over texts; 0 and NaN are dropped, and 1 is for nothing left.

    Up to 13 differences all signs are listed, ties or not. scipy's numbers are the same, but where
    there are ties it takes a quarter of a second for each.
    """
    d = np.asarray(differences, dtype=np.float64)
    d = d[np.isfinite(d) & (d != 0)]
    if d.size == 0:
        return 1.0
    if d.size > EXACT_TEXTS:
        return float(stats.wilcoxon(d, alternative=alternative).pvalue)
    ranks = stats.rankdata(np.abs(d))
    sums = _sign_patterns(d.size) @ ranks
    above = float(np.mean(sums >= ranks[d > 0].sum()))
    below = float(np.mean(sums <= ranks[d > 0].sum()))
    return {"greater": above, "less": below, "two-sided": min(1.0, 2 * min(above, below))}[
        alternative
    ]


def _sign_patterns(n: int) -> NDArray[np.int64]:
    """All 2^n rows of n signs; 1 for plus."""
    return (np.arange(2**n)[:, None] >> np.arange(n)) & 1


Statistic = Callable[[NDArray[np.float64]], float]


def percentile(resampled: Floats, confidence: float = 0.95) -> Interval:
    """The central share of the resampled values; undefined resamples are left out."""
    tail = (1 - confidence) / 2
    defined = resampled[np.isfinite(resampled)]
    if defined.size == 0:
        return NOWHERE
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Interval(float(low), float(high))


def holm(p: ArrayLike) -> Floats:
    """Holm's adjusted p-values, in the order given."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    steps = values[order] * (values.size - np.arange(values.size))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's ρ; NaN where one side is constant."""
    a, b = vector(x, "x"), vector(y, "y")
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(stats.spearmanr(a, b).statistic)
