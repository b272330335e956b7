"""What do the numbers of a table come to, mean over seeds? As sentences tell them."""

from __future__ import annotations

from collections.abc import Mapping
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


def listed(values: Mapping[Any, Any] | pd.Series, form: str) -> str:
    """ "IMDb 52.1, SNLI 36.0"; what has no number is left out."""
    return ", ".join(f"{n} {v:{form}}" for n, v in values.items() if np.isfinite(v))
