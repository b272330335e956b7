"""Which metrics say the same, over models and over ways of training?"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

LINE = ["a", "b", "rho", "low", "high", "n"]
DRAWS = 300  # resamples
FEWEST, SEEDS = 5, 3  # rows for a correlation; seeds for its interval
APART = 0.5  # 1 − ρ above which two groups are two


def correlations(numbers: pd.DataFrame, over: str) -> pd.DataFrame:
    """Spearman's ρ of each pair of columns of `by_run`: a, b, rho, low, high, n.

    over="models": of all runs; over="rows": of the rows' means over seeds. The interval is the 95 %
    percentile interval of rows and seeds drawn again, each as a whole: what rows share in a seed
    and seeds in a row is no further evidence. There is none with fewer than three seeds.
    """
    found: list[tuple[str, str, float, float, float, int]] = []
    if numbers.empty:
        return pd.DataFrame(found, columns=LINE)
    columns, rows = list(numbers.columns), numbers.index.unique("row")
    seeds = numbers.index.unique("seed")
    every = pd.MultiIndex.from_product([rows, seeds])
    runs = numbers.reindex(every).to_numpy().reshape(len(rows), len(seeds), len(columns))
    whole, rng, drawn = _points(runs, over), np.random.default_rng(0), []
    for _ in range(DRAWS if len(rows) >= FEWEST and len(seeds) >= SEEDS else 0):
        some, when = (rng.integers(0, len(of), size=len(of)) for of in (rows, seeds))
        drawn.append(_rho(_points(runs[some][:, when], over)))
    rho = _rho(whole)
    for i in range(len(columns)):
        for j in range(i):
            values = np.array([one[i, j] for one in drawn])
            values = values[np.isfinite(values)]
            low, high = np.percentile(values, [2.5, 97.5]) if values.size else (np.nan, np.nan)
            n = len(whole[[j, i]].dropna())
            found.append((columns[j], columns[i], rho[i, j], low, high, n))
    return pd.DataFrame(found, columns=LINE)


def _points(runs: np.ndarray, over: str) -> pd.DataFrame:
    """[run or row, column] of [row, seed, column]; a row's mean is over the seeds that it has."""
    if over == "models":
        return pd.DataFrame(runs.reshape(-1, runs.shape[-1]))
    with warnings.catch_warnings():  # of a row without any: NaN, as it should be
        warnings.simplefilter("ignore", RuntimeWarning)
        return pd.DataFrame(np.nanmean(runs, axis=1))


def _rho(numbers: pd.DataFrame) -> np.ndarray:
    """[column, column]; NaN where a side is constant or fewer than FEWEST have both."""
    return numbers.corr(method="spearman", min_periods=FEWEST).to_numpy()


def groups(found: pd.DataFrame, columns: Sequence[str]) -> list[list[str]]:
    """The columns that rise and fall together: average linkage on 1 − ρ, cut at `APART`."""
    if len(columns) < 2:
        return [[name] for name in columns]
    place = {name: i for i, name in enumerate(columns)}
    distance = np.ones((len(columns), len(columns)))
    np.fill_diagonal(distance, 0.0)
    for one in found.dropna(subset="rho").itertuples():
        i, j = place[one.a], place[one.b]
        distance[i, j] = distance[j, i] = 1 - one.rho
    labels = fcluster(linkage(squareform(distance), "average"), APART, "distance")
    made: dict[int, list[str]] = {}
    for name, label in zip(columns, labels, strict=True):
        made.setdefault(int(label), []).append(name)
    return sorted(made.values(), key=lambda names: (-len(names), place[names[0]]))


def front(points: pd.DataFrame) -> pd.Series:
    """Of each row, whether no other is at least as good in every column and better in one."""
    values = points.to_numpy(dtype=float)
    beaten = [
        any((other >= one).all() and (other > one).any() for other in values) for one in values
    ]
    complete = np.isfinite(values).all(axis=1)
    return pd.Series(~np.array(beaten, dtype=bool) & complete, index=points.index)
