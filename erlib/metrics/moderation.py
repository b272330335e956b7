"""How much does a difference vary over seeds, when only a few seeds are there? (metrics.md §13.3)

Three seeds say little of their own variance; the other contrasts of the same metric say more. Smyth
(2004, "Linear models and empirical Bayes methods", sections 4 to 6): the variances of a pool are
drawn from a scaled inverse χ² with d0 degrees of freedom around s0², and each is moved towards s0².
Ours never moves down: a noisy contrast in a quiet pool would be decided wrongly in 20 % of the
cases. docs/verdicts.md has the simulations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, polygamma

Floats = NDArray[np.float64]
FEWEST = 5  # contrasts in a pool; with fewer each variance stands for itself
SHARED = 0.5  # correlation of two contrasts that have one end in common


@dataclass(frozen=True)
class Prior:
    """What a pool knows: d0, s0², and the pool's own residual degrees of freedom.

    Arrays [pool, 1], where many pools are looked at in one go.
    """

    freedom: Any
    variance: Any
    residual: float


ALONE = Prior(0.0, 0.0, np.inf)  # no pool


def pool(variances: ArrayLike, seeds: ArrayLike) -> Prior:
    """The prior of a pool of contrasts; those without variance or with under three seeds stay out.

    >>> pool([1.0, 1.0, 1.0, 1.0, 1.0, 0.0], seeds=[3, 3, 3, 3, 3, 3]).freedom
    inf
    >>> pool([1.0, 2.0, 4.0, 1.0], seeds=[3, 3, 3, 3]) == ALONE
    True
    """
    s2, n = np.asarray(variances, dtype=float), np.asarray(seeds, dtype=float)
    kept = (s2 > 0) & (n >= 3)
    if kept.sum() < FEWEST:
        return ALONE
    found = moments(s2[kept], n[kept] - 1)
    return Prior(found.freedom.item(), found.variance.item(), found.residual)


def moments(variances: Floats, freedom: Floats | float) -> Prior:
    """d0 and s0² from the moments of log s² (section 6.2), over the last axis.

    Where the logarithms spread no more than sampling makes them, d0 = ∞ and s0² is the pooled
    variance. m contrasts with one Baseline correlate by ½, their variances by ¼: of their residual
    degrees of freedom, Σd, there are Σd/(1 + (m − 1)/4).
    """
    d = np.broadcast_to(np.asarray(freedom, dtype=float), variances.shape)
    e = np.log(variances) - digamma(d / 2) + np.log(d / 2)
    excess = e.var(axis=-1, ddof=1, keepdims=True) - _trigamma(d / 2).mean(axis=-1, keepdims=True)
    spread = excess > 0
    half = trigamma_inverse(np.where(spread, excess, 1.0))  # d0/2
    drawn = np.exp(e.mean(axis=-1, keepdims=True) + digamma(half) - np.log(half))
    pooled = (d * variances).sum(axis=-1, keepdims=True) / d.sum(axis=-1, keepdims=True)
    contrasts = variances.shape[-1]
    residual = d.sum(axis=-1).flat[0] / (1 + (contrasts - 1) * SHARED**2)
    return Prior(np.where(spread, 2 * half, np.inf), np.where(spread, drawn, pooled), residual)


def moderated(variances: ArrayLike, freedom: ArrayLike, prior: Prior) -> tuple[Floats, Floats]:
    """(s²_mod, its degrees of freedom): (d0·s0² + d·s²)/(d0 + d) or s², the larger; and d0 + d.

    The degrees of freedom never exceed the pool's residual ones.
    """
    s2, d = np.asarray(variances, dtype=float), np.asarray(freedom, dtype=float)
    d0, s02 = np.asarray(prior.freedom, dtype=float), np.asarray(prior.variance, dtype=float)
    finite = np.where(np.isfinite(d0), d0, 0.0)
    mixed = np.where(np.isfinite(d0), (finite * s02 + d * s2) / (finite + d), s02)
    return np.maximum(s2, mixed), np.minimum(d0 + d, np.maximum(prior.residual, d))


def trigamma_inverse(y: ArrayLike) -> Floats:
    """x with ψ′(x) = y > 0, by Newton's method on 1/ψ′, which is convex (Smyth's appendix).

    >>> round(float(trigamma_inverse(np.pi**2 / 6)), 12)
    1.0
    """
    target = np.asarray(y, dtype=float)
    x = 0.5 + 1 / target
    for _ in range(50):
        value = _trigamma(x)
        step = value * (1 - value / target) / polygamma(2, x)
        x = x + step
        if np.all(np.abs(step) < 1e-12 * x):
            break
    return np.asarray(x)


def _trigamma(x: Floats) -> Floats:
    return np.asarray(polygamma(1, x))
