"""What do the numbers of a table come to, mean over seeds? As sentences tell them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from erlib.papers.study import Study

Facts = dict[str, Any]  # what a sentence needs; empty where there is nothing to tell


def means(
    study: Study, table: str, metric: str | None = None, *, start: str = "", every: bool = False
) -> pd.DataFrame:
    """Rows × columns of a table: of models that have learnt their task, or of `every` one; those
    rows that begin with `start`. Only what was measured is there, in the table's order."""
    found = study.numbers(cell for cell in study.of(table) if cell.row.startswith(start))
    found = found[found["value"].notna() & (found["trained"] | every)]
    if metric is not None:
        found = found[found["metric"] == metric]
    wide = found.groupby(["row", "column"], sort=False)["value"].mean().unstack("column")
    return wide.reindex(index=found["row"].unique(), columns=found["column"].unique())


def span(values: Iterable[float], form: str = "d") -> str:
    """From the least to the largest: "1 to 3", or "3" where they are the same."""
    low, high = (f"{end(values):{form}}" for end in (min, max))
    return low if low == high else f"{low} to {high}"


def power(value: float) -> str:
    """A rate or a weight as papers print it: 1e-3, 2.5e-5, 1."""
    digits, exponent = f"{value:e}".split("e")
    return f"{float(digits):g}" + (f"e{int(exponent)}" if int(exponent) else "")


def listed(values: Mapping[Any, Any] | pd.Series, form: str) -> str:
    """ "IMDb 52.1, SNLI 36.0"; what has no number is left out."""
    return ", ".join(f"{n} {v:{form}}" for n, v in values.items() if np.isfinite(v))
