"""Which intervals and p-values stand behind a claim? (metrics.md §13)

The unit is the seed: systems share seed, data order and initialisation, so differences are paired.
The verdicts that follow from these numbers are in `erlib.metrics.verdicts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
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


def mean_std(values: ArrayLike) -> tuple[float, float]:
    """Mean and sample standard deviation (ddof 1); the deviation of one value is NaN."""
    x = vector(values, "values")
    return float(x.mean()), float(x.std(ddof=1)) if x.size > 1 else float("nan")


def t_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """Student's interval of the mean; NaN for one value, which has no spread."""
    x = vector(values, "values")
    if x.size < 2:
        return NOWHERE
    half = stats.t.ppf((1 + confidence) / 2, x.size - 1) * x.std(ddof=1) / np.sqrt(x.size)
    return Interval(float(x.mean() - half), float(x.mean() + half))


def t_p(values: ArrayLike, null: float = 0.0) -> float:
    """Two-sided p of the t test that `t_interval` inverts; 1 for one value."""
    x = vector(values, "values") - null
    if x.size < 2:
        return 1.0
    error = x.std(ddof=1) / np.sqrt(x.size)
    if error == 0:
        return 1.0 if x.mean() == 0 else 0.0
    return float(2 * stats.t.sf(abs(x.mean()) / error, x.size - 1))


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


def per_seed(per_text: Sequence[ArrayLike] | Floats, statistic: Statistic | None = None) -> Floats:
    """The statistic of each seed's texts; without one, their mean (NaN texts are undefined)."""
    measure = statistic or (lambda rows: float(np.nanmean(rows)))
    return np.array([measure(np.asarray(rows, dtype=np.float64)) for rows in per_text])


def two_level_bootstrap(
    per_text: Sequence[ArrayLike] | Floats,
    *,
    statistic: Statistic | None = None,
    same_texts: bool = True,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Percentile interval of the mean over seeds when both seeds and texts are drawn again.

    `per_text`: [seed, text] paired differences (NaN where undefined); or, with a `statistic` that
    is not a mean over texts, [seed, text, column], the statistic turning one seed's rows into its
    difference (`metrics.task.f1_difference`).
    `same_texts`: every seed was evaluated on the same texts in the same order, so one draw of texts
    serves all seeds of a resample (seeds × texts crossed); otherwise texts are drawn within each
    seed, and the seeds' lists may differ in length.
    """
    rows = [np.asarray(one, dtype=np.float64) for one in per_text]
    if not rows or any(len(one) == 0 for one in rows):
        raise ValueError("per_text needs at least one seed, and each seed at least one text")
    if same_texts and len({len(one) for one in rows}) > 1:
        raise ValueError(
            f"seeds have {sorted({len(one) for one in rows})} texts: with same_texts=True "
            "every seed needs the same ones; pass same_texts=False if they differ"
        )
    frozen = tuple((one.tobytes(), one.shape) for one in rows)
    return percentile(_resampled(frozen, statistic, same_texts, resamples, seed), confidence)


@lru_cache(maxsize=32)  # a claim is decided at several levels of confidence from the same draws
def _resampled(
    frozen: tuple[tuple[bytes, tuple[int, ...]], ...],
    statistic: Statistic | None,
    same_texts: bool,
    resamples: int,
    seed: int,
) -> Floats:
    """The mean over drawn seeds in every resample; `frozen`: each seed's rows and their shape."""
    rows = [np.frombuffer(values).reshape(shape) for values, shape in frozen]
    rng = np.random.default_rng(seed)
    draw = rng.integers(0, len(rows), size=(resamples, len(rows)))  # seeds of each resample
    if statistic is None and same_texts:
        return _crossed_means(np.stack(rows), draw, rng)
    measure = statistic or (lambda one: float(np.nanmean(one)))
    means = np.empty(resamples)
    for b, seeds in enumerate(draw):
        if same_texts:  # a seed that is drawn twice has the same texts, and the same value
            texts = _texts_of(rows[0], rng)
            of_seed = {s: measure(rows[s][texts]) for s in set(seeds)}
            means[b] = np.mean([of_seed[s] for s in seeds])
        else:
            means[b] = np.mean([measure(rows[s][_texts_of(rows[s], rng)]) for s in seeds])
    return means


def _texts_of(rows: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    return rng.integers(0, len(rows), size=len(rows))


def _crossed_means(values: Floats, draw: NDArray[np.int64], rng: np.random.Generator) -> Floats:
    """Means over drawn seeds of means over drawn texts, by counting how often a text is drawn."""
    texts = values.shape[1]
    defined = np.isfinite(values)
    means = np.empty(len(draw))
    for start in range(0, len(draw), 500):  # counts are [500, text]: bounded memory
        part = slice(start, start + 500)
        counts = rng.multinomial(texts, np.full(texts, 1 / texts), size=len(draw[part]))
        total = counts @ np.where(defined, values, 0.0).T  # [resample, seed]
        weight = counts @ defined.T.astype(np.float64)
        with np.errstate(invalid="ignore"):
            of_seed = total / weight
        means[part] = np.take_along_axis(of_seed, draw[part], axis=1).mean(axis=1)
    return means


def percentile(resampled: Floats, confidence: float = 0.95) -> Interval:
    """The central share of the resampled values; undefined resamples are left out."""
    tail = (1 - confidence) / 2
    defined = resampled[np.isfinite(resampled)]
    if defined.size == 0:
        return NOWHERE
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Interval(float(low), float(high))


def tost_p(differences: ArrayLike, margin: float) -> float:
    """Two one-sided t tests: p of |mean difference| >= margin; 1 for one value.

    p < α exactly when the 1 − 2α t interval lies inside ±margin.
    """
    d = vector(differences, "differences")
    if d.size < 2:
        return 1.0
    error = d.std(ddof=1) / np.sqrt(d.size)
    if error == 0:
        return 0.0 if abs(d.mean()) < margin else 1.0
    return float(stats.t.sf((margin - abs(d.mean())) / error, d.size - 1))


def holm(p: ArrayLike) -> Floats:
    """Holm's adjusted p-values, in the order given."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    steps = values[order] * (values.size - np.arange(values.size))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def holm_levels(p: ArrayLike, alpha: float = 0.05) -> Floats:
    """The level at which Holm's procedure tests each p: α/m for the smallest, then α/(m−1), …

    It stops at the first p above its level; those after it keep the level of the stop, so that
    `p <= level` is true of exactly the hypotheses that Holm rejects.
    """
    values = np.asarray(p, dtype=np.float64)
    levels = np.empty_like(values)
    level = alpha
    stopped = False
    for rank, index in enumerate(np.argsort(values, kind="stable")):
        if not stopped:
            level = alpha / (values.size - rank)
            stopped = bool(values[index] > level)
        levels[index] = level
    return levels


def spearman(x: ArrayLike, y: ArrayLike, system: Sequence[object] | None = None) -> float:
    """Spearman's ρ; with `system`, partial ρ: ranks with each system's mean rank taken out.

    NaN where one side is constant (within every system).
    """
    a, b, groups = _points(x, y, system)
    return float(_resampled_rho(a, b, groups, np.ones((1, a.size)))[0])


def _points(
    x: ArrayLike, y: ArrayLike, system: Sequence[object] | None
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    a, b = vector(x, "x"), vector(y, "y")
    groups = np.zeros(a.size, dtype=np.int64) if system is None else _codes(system)
    if not a.size == b.size == groups.size:
        raise ValueError(f"x, y and system have {a.size}, {b.size} and {groups.size} points")
    return a, b, groups


def _resampled_rho(x: Floats, y: Floats, groups: NDArray[np.int64], times: Floats) -> Floats:
    """(Partial) ρ of each resample; `times` [resample, point]: how often each point was drawn."""
    member = (groups[:, None] == np.arange(groups.max() + 1)).astype(np.float64)  # [point, group]
    drawn = np.maximum(times @ member, 1)  # [resample, group]
    residual = []
    for v in (x, y):
        below = (v[None, :] < v[:, None]) + 0.5 * (v[None, :] == v[:, None])
        ranks = times @ below.T + 0.5  # mid-ranks, as many copies as were drawn
        residual.append(ranks - ((times * ranks) @ member / drawn) @ member.T)
    product, xx, yy = (
        (times * residual[i] * residual[j]).sum(axis=1) for i, j in ((0, 1), (0, 0), (1, 1))
    )
    scale = np.sqrt(xx * yy)
    return np.divide(product, scale, out=np.full_like(scale, np.nan), where=scale > 1e-9)


def _codes(labels: Sequence[object]) -> NDArray[np.int64]:
    known = {label: code for code, label in enumerate(dict.fromkeys(labels))}
    return np.array([known[label] for label in labels], dtype=np.int64)


def spearman_interval(
    x: ArrayLike,
    y: ArrayLike,
    *,
    system: Sequence[object] | None = None,
    seeds: Sequence[object] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap of (partial) ρ. Seeds are drawn, each with the points of all systems.

    `seeds` says which seed each point belongs to; left out, every point is a seed of its own.
    """
    a, b, groups = _points(x, y, system)
    if system is not None and seeds is None:
        raise ValueError("points of several systems share seeds: say which with seeds=")
    unit = np.arange(a.size) if seeds is None else _codes(seeds)
    if unit.size != a.size:
        raise ValueError(f"{unit.size} seeds for {a.size} points")
    units = int(unit.max()) + 1
    times = np.random.default_rng(seed).multinomial(units, np.full(units, 1 / units), resamples)
    return percentile(_resampled_rho(a, b, groups, times[:, unit].astype(np.float64)), confidence)


def fisher_interval(
    rho: float, points: int, *, factors: int = 0, confidence: float = 0.95
) -> Interval:
    """Interval of Spearman's ρ by Fisher's z with Fieller's variance 1.06/(n − 3 − factors).

    [-1, 1] where the variance has no degrees of freedom left.
    """
    freedom = points - 3 - factors
    if freedom <= 0 or not np.isfinite(rho):
        return Interval(-1.0, 1.0)
    half = stats.norm.ppf((1 + confidence) / 2) * np.sqrt(1.06 / freedom)
    centre = np.arctanh(np.clip(rho, -1 + 1e-12, 1 - 1e-12))
    return Interval(float(np.tanh(centre - half)), float(np.tanh(centre + half)))


def log_variance_ratio_interval(
    treated: ArrayLike, baseline: ArrayLike, confidence: float = 0.95
) -> Interval:
    """F interval of log(var treated / var baseline); NaN below two values or without spread."""
    a, b = vector(treated, "treated"), vector(baseline, "baseline")
    if min(a.size, b.size) < 2 or a.var() == 0 or b.var() == 0:
        return NOWHERE
    ratio = np.log(a.var(ddof=1) / b.var(ddof=1))
    tail = (1 - confidence) / 2
    quantiles = stats.f.ppf([1 - tail, tail], a.size - 1, b.size - 1)
    low, high = ratio - np.log(quantiles)
    return Interval(float(low), float(high))


def brown_forsythe_p(a: ArrayLike, b: ArrayLike) -> float:
    """p of equal variances by Levene's test around the medians; 1 where neither side spreads."""
    x, y = vector(a, "a"), vector(b, "b")
    if np.ptp(x) == 0 and np.ptp(y) == 0:
        return 1.0
    with np.errstate(divide="ignore", invalid="ignore"):  # with two seeds: 0 / 0
        return float(stats.levene(x, y, center="median").pvalue)


def binomial_interval(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Clopper and Pearson's exact interval of a share."""
    if not 0 <= successes <= trials or trials == 0:
        raise ValueError(f"{successes} successes of {trials} trials is not a share")
    found = stats.binomtest(successes, trials).proportion_ci(confidence, method="exact")
    return Interval(float(found.low), float(found.high))


def paired_bootstrap(
    treated: ArrayLike,
    baseline: ArrayLike,
    statistic: Callable[[Floats], Floats],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Floats:
    """Resampled values of statistic(treated) − statistic(baseline), seeds drawn in pairs.

    `statistic` maps [resample, seed] to [resample] (a quartile, say, which no seed has alone).
    """
    a, b = vector(treated, "treated"), vector(baseline, "baseline")
    if a.size != b.size:
        raise ValueError(f"{a.size} treated and {b.size} baseline seeds are not pairs")
    drawn = np.random.default_rng(seed).integers(0, a.size, size=(resamples, a.size))
    return statistic(a[drawn]) - statistic(b[drawn])
