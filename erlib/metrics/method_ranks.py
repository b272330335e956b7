"""Which method is best on these texts, and would it be on others like them?

Texts are drawn again, the same for all methods, and the methods ranked by their means in each draw.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from erlib.metrics.estimates import text_draws
from erlib.metrics.stats import NOWHERE, percentile

FEWEST = 5  # texts: of fewer, drawing again says nothing of others


def method_ranks(values: pd.DataFrame, same: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Mean, 95 % interval, rank (1: the highest) and the ranks' interval of each method.

    `values` [text, method], high is good. `same`: methods that are counted as another one, whose
    values and place they have. Intervals are NaN below `FEWEST` texts. Columns: `mean, low, high,
    rank, rank_low, rank_high`, in the order of `values`.
    """
    doubles = dict(same or {})
    own = [name for name in values.columns if name not in doubles]
    table = values[own].to_numpy(dtype=np.float64)
    if not np.isfinite(table).all():
        raise ValueError("every method needs a finite value for every text")
    draws = text_draws(len(table)) @ table / len(table)  # [draw, method]
    ranks = _ranks(draws)
    several = len(table) >= FEWEST
    frame = pd.DataFrame(
        {
            "mean": table.mean(axis=0),
            "rank": _ranks(table.mean(axis=0)[None])[0],
            **_interval("low", "high", draws, several),
            **_interval("rank_low", "rank_high", ranks, several),
        },
        index=own,
    )
    frame = frame.loc[[doubles.get(name, name) for name in values.columns]]
    return frame.set_index(values.columns)[["mean", "low", "high", "rank", "rank_low", "rank_high"]]


def above_floor(values: pd.DataFrame, floor: str) -> pd.Series:
    """[method] bool: is the 95 % interval of its difference to the method `floor` above 0?"""
    differences = values.sub(values[floor], axis=0).to_numpy(dtype=np.float64)
    draws = text_draws(len(values)) @ differences / len(values)
    return pd.Series([percentile(column).low > 0 for column in draws.T], index=values.columns)


def _ranks(means: np.ndarray) -> np.ndarray:
    """[draw, method], 1 for the highest; equal ones share the better place."""
    return rankdata(-means, method="min", axis=1)


def _interval(low: str, high: str, draws: np.ndarray, several: bool) -> dict[str, list[float]]:
    ends = [percentile(column) if several else NOWHERE for column in draws.T]
    return {low: [end.low for end in ends], high: [end.high for end in ends]}
