"""How does curvature go with the cartography of a text? (Tables 5 and 11)"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from erlib.papers.agreement.study import Study, labels

STATISTICS = {"Grad norm": "norm", "Min dist": "min_dist", "Grad of sum": "sum"}
ATTRIBUTES = ("confidence", "closeness", "variability")


def bent_texts(study: Study, model: str) -> pd.DataFrame:
    """One row per text of every Base and Tying run: statistics and attributes."""
    return pd.concat(
        [
            study.bends(run.spec, model)
            .join(study.map_of(run.spec))
            .reset_index()
            .assign(**labels(run))
            for run in study.compared(model).itertuples()
        ],
        ignore_index=True,
    )


def correlations(study: Study, model: str) -> pd.DataFrame:
    """Pearson's r over texts, one row per run, statistic and attribute."""
    rows = []
    for (paper, variant, seed), texts in bent_texts(study, model).groupby(
        ["set", "variant", "seed"], sort=False
    ):
        for statistic, column in STATISTICS.items():
            for attribute in ATTRIBUTES:
                rows.append(
                    {
                        "set": paper,
                        "variant": variant,
                        "seed": seed,
                        "statistic": statistic,
                        "attribute": attribute,
                        "r": pearson(texts[[column, attribute]].to_numpy()),
                        "texts": len(texts),
                    }
                )
    return pd.DataFrame(rows)


def of_whole_seeds(found: pd.DataFrame) -> pd.DataFrame:
    """The correlations of the seeds that have every set, so that means weigh all sets alike."""
    sets = found.groupby("seed")["set"].transform("nunique")
    return found[sets == found["set"].nunique()]


def correlation_tests(study: Study, model: str) -> pd.DataFrame:
    """r of each cell of Table 11 (mean over seeds by Fisher's z), its interval and p over texts.

    Seeds share their texts, so the interval is as wide as one seed's: agreement.md §4.10.
    """
    cells = correlations(study, model).groupby(
        ["statistic", "set", "attribute", "variant"], sort=False
    )
    rows = []
    for key, cell in cells:
        r, texts = fisher_mean(cell["r"]), int(cell["texts"].min())
        low, high, p = fisher_test(r, texts)
        names = dict(zip(["statistic", "set", "attribute", "variant"], key, strict=True))
        rows.append(
            {**names, "seeds": len(cell), "texts": texts, "r": r, "low": low, "high": high, "p": p}
        )
    return pd.DataFrame(rows)


def fisher_test(r: float, texts: int) -> tuple[float, float, float]:
    """The 95 % interval of Pearson's r by Fisher's z, and p of r = 0 (two-sided)."""
    if texts <= 3 or not np.isfinite(r):
        return float("nan"), float("nan"), float("nan")
    z, error = np.arctanh(_inside(r)), 1 / np.sqrt(texts - 3)
    low, high = np.tanh(z + np.array([-1, 1]) * norm.ppf(0.975) * error)
    return float(low), float(high), float(2 * norm.sf(abs(z) / error))


def fisher_mean(r: Sequence[float] | pd.Series) -> float:
    """The mean of correlations on Fisher's z scale; undefined ones are left out."""
    values = np.asarray(r, dtype=float)
    values = values[np.isfinite(values)]
    return float(np.tanh(np.arctanh(_inside(values)).mean())) if len(values) else float("nan")


def _inside(r: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Away from ±1, where z is infinite."""
    return np.clip(r, -1 + 1e-12, 1 - 1e-12)


def pearson(pairs: NDArray[np.float64]) -> float:
    """r of rows (x, y); NaN where one side is constant or there are fewer than three."""
    if len(pairs) < 3 or np.ptp(pairs, axis=0).min() == 0:
        return float("nan")
    x, y = (pairs - pairs.mean(axis=0)).T
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def mean_correlation(rows: NDArray[np.float64]) -> float:
    """Of rows [text, (x, y, set)]: r within each set, mean over sets; the bootstrap's statistic."""
    return fisher_mean([pearson(rows[rows[:, 2] == s, :2]) for s in np.unique(rows[:, 2])])
