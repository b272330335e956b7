"""How are correlations averaged, and how sure is one? Fisher's z."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm


def pearson(pairs: pd.DataFrame) -> float:
    """r of two columns; NaN where one is constant or there are fewer than three rows."""
    values = pairs.to_numpy(dtype=float)
    if len(values) < 3 or np.ptp(values, axis=0).min() == 0:
        return float("nan")
    x, y = (values - values.mean(axis=0)).T
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def fisher_mean(r: Sequence[float] | pd.Series) -> float:
    """The mean of correlations on Fisher's z scale; undefined ones are left out."""
    values = np.asarray(r, dtype=float)
    values = values[np.isfinite(values)]
    return float(np.tanh(np.arctanh(_inside(values)).mean())) if len(values) else float("nan")


def fisher_test(r: float, texts: int) -> tuple[float, float, float]:
    """The 95 % interval of Pearson's r by Fisher's z, and p of r = 0 (two-sided)."""
    if texts <= 3 or not np.isfinite(r):
        return float("nan"), float("nan"), float("nan")
    z, error = np.arctanh(_inside(r)), 1 / np.sqrt(texts - 3)
    low, high = np.tanh(z + np.array([-1, 1]) * norm.ppf(0.975) * error)
    return float(low), float(high), float(2 * norm.sf(abs(z) / error))


def _inside(r: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Away from ±1, where z is infinite."""
    return np.clip(r, -1 + 1e-12, 1 - 1e-12)
