"""Which metrics say the same, over models and over ways of training?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

DRAWS, FEWEST = 300, 5  # resamples of rows; rows for a correlation
APART = 0.5  # 1 − ρ above which two groups are two


def correlations(numbers: pd.DataFrame, over: str) -> pd.DataFrame:
    """Spearman's ρ of each pair of columns of `by_run`: a, b, rho, low, high, n.

    over="models": of all runs; over="rows": of the rows' means over seeds. Either way the interval
    is the 95 % percentile interval of rows drawn again with all their seeds, since a row's seeds
    are no further ways of training.
    """
    if over == "rows":
        numbers = numbers.groupby(level="row", sort=False).mean()
    by_row = [numbers.xs(row, level="row") if over == "models" else numbers.loc[[row]]
              for row in numbers.index.unique("row")]  # fmt: skip
    columns = list(numbers.columns)
    rho = _rho(numbers)
    rng, drawn = np.random.default_rng(0), []
    for _ in range(DRAWS if len(by_row) >= FEWEST else 0):
        chosen = rng.integers(0, len(by_row), size=len(by_row))
        drawn.append(_rho(pd.concat([by_row[i] for i in chosen])))
    rows = []
    for i in range(len(columns)):
        for j in range(i):
            every = np.array([one[i, j] for one in drawn])
            every = every[np.isfinite(every)]
            low, high = np.percentile(every, [2.5, 97.5]) if every.size else (np.nan, np.nan)
            n = int(numbers[[columns[i], columns[j]]].dropna().shape[0])
            rows.append((columns[j], columns[i], rho[i, j], low, high, n))
    return pd.DataFrame(rows, columns=["a", "b", "rho", "low", "high", "n"])


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
