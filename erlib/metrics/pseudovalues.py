"""Which value does each seed have where the statistic is no mean over seeds?

The jackknife's: n·θ − (n − 1)·θ without the seed (Miller 1968, "Jackknifing variances"). Their mean
estimates θ, and their variance over n is its own; what is done with differences is done with them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Pairs = Mapping[tuple[Any, Any], float]


def jackknife(
    units: Sequence[Hashable], statistic: Callable[[Sequence[Hashable]], float]
) -> Floats:
    """A pseudo-value of the statistic for each unit."""
    n, whole = len(units), statistic(units)
    without = [statistic([*units[:i], *units[i + 1 :]]) for i in range(n)]
    return n * whole - (n - 1) * np.array(without)


def spread(after: ArrayLike, before: ArrayLike) -> Floats:
    """Of log(variance after / variance before), seeds in pairs; not finite without any spread."""
    a, b = np.asarray(after, dtype=float), np.asarray(before, dtype=float)

    def log_ratio(seeds: Sequence[Hashable]) -> float:
        kept = np.array(seeds, dtype=int)
        return float(np.log(a[kept].var(ddof=1)) - np.log(b[kept].var(ddof=1)))

    with np.errstate(divide="ignore", invalid="ignore"):
        return jackknife(range(a.size), log_ratio)


def distances(across: Pairs, within: Pairs) -> Floats:
    """Of the mean distance between a system and the Baseline, less that between two Baselines.

    `across` (s, s′): system of seed s and Baseline of seed s′; `within`: Baselines of both seeds. A
    seed is left out of both. Pairs of one seed are not used: they share their initialisation.
    """
    seeds = sorted({s for pair in (*across, *within) for s in pair}, key=str)

    def further(kept: Sequence[Hashable]) -> float:
        return _mean(across, set(kept)) - _mean(within, set(kept))

    return jackknife(seeds, further)


def _mean(pairs: Pairs, kept: set[Hashable]) -> float:
    return float(np.mean([d for (a, b), d in pairs.items() if a != b and {a, b} <= kept]))


def models(pairs: Pairs) -> Floats:
    """Of the mean over pairs of models, by model: three pairs of three models are not three."""
    units = observed(pairs)
    always = {model for pair in pairs for model in pair} - set(units)

    def mean(kept: Sequence[Hashable]) -> float:
        return _mean(pairs, {*kept, *always})

    return jackknife(units, mean)


def observed(pairs: Pairs) -> list[Hashable]:
    """The models that can be left out: not one that is in every pair."""
    named = dict.fromkeys(model for pair in pairs for model in pair)
    return [model for model in named if not all(model in pair for pair in pairs)]
