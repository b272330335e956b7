"""How large is a difference, and how sure is it? (metrics.md §13.3)

Three kinds of estimate answer alike: a mean over seeds, a pooled correlation, a share of seeds. All
are on the contrast's scale. `above(x)` is the p of "it is x or less", `below(x)` of "x or more";
`power` the chance that one of them rejects x at a level if the estimate is the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import expit, logit

from erlib.metrics.moderation import ALONE, Prior, moderated
from erlib.metrics.stats import (
    NOWHERE,
    RESAMPLES,
    Interval,
    percentile,
    sign_flip_p,
    spearman,
    t_interval,
    vector,
)

Floats = NDArray[np.float64]


class Estimate(Protocol):
    """What the rules ask of an estimate."""

    @property
    def mean(self) -> float: ...
    @property
    def seeds(self) -> int: ...
    def interval(self, confidence: float) -> Interval: ...
    def above(self, value: float) -> float: ...
    def below(self, value: float) -> float: ...
    def power(self, null: float, side: int, level: float) -> float: ...
    def at(self, seeds: int, texts: int) -> Estimate: ...


@dataclass(frozen=True, eq=False)
class Evidence:
    """The differences of a contrast by seed, on its scale, and what texts add to their mean.

    `text_variance` is s²_text/N; `draws` [resample, seed] the differences with texts drawn again;
    `base` the Baseline's mean in the metric's unit.
    """

    differences: ArrayLike
    text_variance: float = 0.0
    texts: int = 0
    draws: Floats | None = field(default=None, repr=False)
    base: float = float("nan")

    def __post_init__(self) -> None:
        object.__setattr__(self, "differences", vector(self.differences, "differences"))

    @property
    def seeds(self) -> int:
        return np.asarray(self.differences).size

    @property
    def variance(self) -> float:
        """s² over seeds; NaN for one. 0 where they differ by rounding alone."""
        d = np.asarray(self.differences)
        if d.size < 2:
            return float("nan")
        return 0.0 if np.ptp(d) <= 1e-12 * np.abs(d).max() else float(d.var(ddof=1))

    @property
    def constant(self) -> bool:
        """Every seed has the same difference, and texts do not vary it: an identity."""
        return self.variance == 0 and self.text_variance == 0

    def beside(self) -> tuple[Interval, Interval, float]:
        """Plain t interval, two-level bootstrap of seeds and texts, exact sign-flip p."""
        d = np.asarray(self.differences)
        drawn = np.broadcast_to(d, (RESAMPLES, d.size)) if self.draws is None else self.draws
        rng = np.random.default_rng(0)
        seeds = rng.integers(0, d.size, size=drawn.shape)
        both = np.take_along_axis(drawn, seeds, axis=1).mean(axis=1)
        return t_interval(d), percentile(both) if d.size > 1 else NOWHERE, sign_flip_p(d)


@dataclass(frozen=True)
class Mean:
    """The mean over seeds: Var = s²_mod/n + s²_text/N, Satterthwaite's degrees of freedom."""

    mean: float
    spread: float  # s²_mod
    spread_freedom: float
    seeds: int
    text_variance: float = 0.0
    texts: int = 0

    @property
    def variance(self) -> float:
        """Of the mean."""
        return self.spread / self.seeds + self.text_variance

    @property
    def freedom(self) -> float:
        """Satterthwaite's, of the sum of the two parts."""
        parts = ((self.spread / self.seeds, self.spread_freedom), (self.text_variance, self._texts))
        by_part = sum(v**2 / d for v, d in parts if v > 0)
        return self.variance**2 / by_part if by_part > 0 else self.spread_freedom

    @property
    def _texts(self) -> float:
        return max(self.texts - 1.0, 1.0)

    @property
    def of_texts(self) -> float:
        """The share of the variance that texts make."""
        return self.text_variance / self.variance if self.variance > 0 else 0.0

    def interval(self, confidence: float) -> Interval:
        half = stats.t.ppf((1 + confidence) / 2, self.freedom) * np.sqrt(self.variance)
        return Interval(float(self.mean - half), float(self.mean + half))

    def above(self, value: float) -> float:
        return float(stats.t.sf((self.mean - value) / np.sqrt(self.variance), self.freedom))

    def below(self, value: float) -> float:
        return float(stats.t.cdf((self.mean - value) / np.sqrt(self.variance), self.freedom))

    def power(self, null: float, side: int, level: float) -> float:
        critical = stats.t.isf(level, self.freedom)
        away = side * (self.mean - null) / np.sqrt(self.variance)
        if np.isinf(self.freedom) or away > 30:
            return float(stats.norm.sf(critical - away))
        return float(stats.nct.sf(critical, self.freedom, away))

    def at(self, seeds: int, texts: int) -> Mean:
        """The same mean and spread with other numbers of seeds and texts."""
        by_texts = self.text_variance * (self.texts / texts if texts else 1.0)
        more = self.spread_freedom + seeds - self.seeds
        return replace(
            self, seeds=seeds, texts=texts, text_variance=by_texts, spread_freedom=max(more, 1.0)
        )


def mean_of(evidence: Evidence, prior: Prior = ALONE) -> Mean:
    """The mean difference, its spread over seeds moderated by what the pool knows."""
    d = np.asarray(evidence.differences)
    spread, freedom = moderated(evidence.variance, d.size - 1, prior)
    return Mean(
        mean=float(d.mean()),
        spread=float(spread),
        spread_freedom=float(freedom),
        seeds=d.size,
        text_variance=evidence.text_variance,
        texts=evidence.texts,
    )


@dataclass(frozen=True)
class Correlation:
    """Spearman's ρ over seeds within each system, pooled by Fisher's z (metrics.md §13.8).

    The standard error is 1/√Σ(n − 3). ρ = ±1 counts as half a step of ρ below it.
    """

    mean: float
    seeds: int
    systems: int
    weight: float  # Σ(n − 3)

    def interval(self, confidence: float) -> Interval:
        half = float(stats.norm.ppf((1 + confidence) / 2) / np.sqrt(self.weight))
        return Interval(self.mean - half, self.mean + half)

    def above(self, value: float) -> float:
        return float(stats.norm.sf((self.mean - value) * np.sqrt(self.weight)))

    def below(self, value: float) -> float:
        return float(stats.norm.cdf((self.mean - value) * np.sqrt(self.weight)))

    def power(self, null: float, side: int, level: float) -> float:
        away = side * (self.mean - null) * np.sqrt(self.weight)
        return float(stats.norm.sf(stats.norm.isf(level) - away))

    def at(self, seeds: int, texts: int) -> Correlation:
        return replace(self, seeds=seeds, weight=float(self.systems * (seeds - 3)))


Points = Mapping[str, tuple[ArrayLike, ArrayLike]]  # system → x and y, one of each by seed


def correlation_of(points: Points) -> Correlation:
    """Of y with x within systems; those with under four seeds or a constant side say nothing."""
    z, weights, seeds = [], [], []
    for x, y in points.values():
        n = len(vector(x, "x"))
        rho = spearman(x, y) if n > 3 else float("nan")
        if np.isfinite(rho):
            most = 1 - 6 / (n * (n**2 - 1))  # half a step: Σd² moves by 2
            z.append(np.arctanh(np.clip(rho, -most, most)))
            weights.append(n - 3)
            seeds.append(n)
    if not z:
        raise ValueError("a correlation needs a system with four seeds, both sides varying")
    mean = float(np.average(z, weights=weights))
    return Correlation(mean, min(seeds), len(z), float(sum(weights)))


@dataclass(frozen=True)
class Share:
    """A share of seeds on the logit scale, with exact binomial tests (Clopper and Pearson)."""

    successes: int
    seeds: int

    @property
    def mean(self) -> float:
        """Logit of (x + ½)/(N + 1)."""
        return float(logit((self.successes + 0.5) / (self.seeds + 1)))

    def interval(self, confidence: float) -> Interval:
        found = stats.binomtest(self.successes, self.seeds).proportion_ci(confidence, "exact")
        return Interval(float(logit(found.low)), float(logit(found.high)))

    def above(self, value: float) -> float:
        return float(stats.binom.sf(self.successes - 1, self.seeds, expit(value)))

    def below(self, value: float) -> float:
        return float(stats.binom.cdf(self.successes, self.seeds, expit(value)))

    def power(self, null: float, side: int, level: float) -> float:
        counts = np.arange(self.seeds + 1)
        under, truth = expit(null), expit(self.mean)
        p = stats.binom.cdf(counts, self.seeds, under)
        if side > 0:
            p = stats.binom.sf(counts - 1, self.seeds, under)
        return float(stats.binom.pmf(counts, self.seeds, truth)[p <= level].sum())

    def at(self, seeds: int, texts: int) -> Share:
        return replace(self, successes=round(seeds * self.successes / self.seeds), seeds=seeds)


@lru_cache(maxsize=8)
def text_draws(texts: int, resamples: int = 1000) -> NDArray[np.float32]:
    """How often each text is drawn in each resample, [resample, text]."""
    drawn = np.random.default_rng(0).integers(0, texts, size=(resamples, texts))
    rows = np.arange(resamples)[:, None] * texts
    counts = np.bincount((drawn + rows).ravel(), minlength=resamples * texts)
    return counts.reshape(resamples, texts).astype(np.float32)
