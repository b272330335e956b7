"""How often do the rules err, and how often do they find? Writes verdicts.csv, in half a minute.

`python docs/measure_verdicts.py`, then `python docs/draw_verdicts.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from erlib.metrics.moderation import Prior, moderated, moments

Floats = NDArray[np.float64]
HERE = Path(__file__).parent
KINDS = ("equal", "inverse χ², 4 df", "80 % 1, 20 % 9")  # the variances of a pool's contrasts
POOLS, SEEDS, EFFECTS = (8, 20), (3, 5, 10), (1, 2, 4)
RULES = ("old: t", "moderated", "new: the larger")
REPEATS = 20_000
SHARED = 0.5  # correlation of two contrasts with one Baseline


def variances(kind: str, pools: int, contrasts: int, rng: np.random.Generator) -> Floats:
    """[pool, contrast]."""
    if kind == "equal":
        return np.ones((pools, contrasts))
    if kind == "inverse χ², 4 df":
        return 4 / rng.chisquare(4, (pools, contrasts))
    noisy = np.arange(contrasts) >= round(0.8 * contrasts)
    return np.broadcast_to(np.where(noisy, 9.0, 1.0), (pools, contrasts))


def tested(differences: Floats) -> dict[str, tuple[Floats, Floats]]:
    """Rule → (variance, degrees of freedom), [pool, contrast], of [pool, contrast, seed]."""
    freedom = differences.shape[-1] - 1.0
    s2 = differences.var(axis=-1, ddof=1)
    prior: Prior = moments(s2, freedom)
    larger, total = moderated(s2, freedom, prior)
    d0, s02 = np.broadcast_arrays(prior.freedom, prior.variance)
    finite = np.where(np.isfinite(d0), d0, 0.0)
    mixed = np.where(np.isfinite(d0), (finite * s02 + freedom * s2) / (finite + freedom), s02)
    plain = np.full_like(s2, freedom)
    return {RULES[0]: (s2, plain), RULES[1]: (mixed, total), RULES[2]: (larger, total)}


def simulated(
    kind: str, contrasts: int, seeds: int, repeats: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Size (two-sided .05) and power (one-sided .025) of each rule, one line each."""
    sd = np.sqrt(variances(kind, repeats, contrasts, rng))
    baseline = rng.standard_normal((repeats, 1, seeds))
    own = rng.standard_normal((repeats, contrasts, seeds))
    noise = np.sqrt(SHARED) * baseline + np.sqrt(1 - SHARED) * own
    differences = sd[..., None] * noise
    lines = []
    for rule, (variance, freedom) in tested(differences).items():
        error, critical = np.sqrt(variance / seeds), stats.t.isf(0.025, freedom)
        t = differences.mean(axis=-1) / error
        wrong = np.abs(t) > critical
        line = {
            "variances": kind,
            "pool": contrasts,
            "n": seeds,
            "rule": rule,
            "size": wrong.mean(),
        }
        line["noisy"] = wrong[sd > 1].mean() if kind == KINDS[2] else np.nan
        for effect in EFFECTS:
            line[f"power {effect} SD"] = (t + effect * sd / error > critical).mean()
        lines.append(line)
    return pd.DataFrame(lines)


def conjunction(parts: int, seeds: int, effect: float, repeats: int, seed: int = 0) -> pd.Series:
    """Chance that all of several true effects are found: Holm's levels, own levels, new rule."""
    rng = np.random.default_rng(seed)
    differences = rng.standard_normal((repeats, parts, seeds)) + effect
    found = tested(differences)
    values = {}
    for name, rule in (("old: t, Holm", RULES[0]), ("t, own level", RULES[0]), ("new", RULES[2])):
        variance, freedom = found[rule]
        p = 2 * stats.t.sf(differences.mean(axis=-1) / np.sqrt(variance / seeds), freedom)
        levels = 0.05 / np.arange(parts, 0, -1) if "Holm" in name else np.full(parts, 0.05)
        values[name] = float((np.sort(p, axis=1) <= levels).all(axis=1).mean())
    return pd.Series(values, name=f"n = {seeds}, {effect} SD")


def main() -> None:
    """Simulate everything, write."""
    rng = np.random.default_rng(0)
    lines = [
        simulated(kind, contrasts, seeds, REPEATS, rng)
        for kind in KINDS
        for contrasts in POOLS
        for seeds in SEEDS
    ]
    pd.concat(lines).to_csv(HERE / "verdicts.csv", index=False, float_format="%.4f")
    joined = [conjunction(10, seeds, effect, REPEATS) for seeds in (3, 5) for effect in (2.0, 4.0)]
    pd.DataFrame(joined).to_csv(HERE / "verdicts_joined.csv", float_format="%.3f")


if __name__ == "__main__":
    main()
