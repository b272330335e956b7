"""What would have come out if the models had been explained and trained as the paper's code did?

Each departure is a switch (agreement.md §4.1 to 4.4 and 4.11). `here` is this notebook, `switched`
the same with the one switch turned.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.papers.agreement.agreements import SAME
from erlib.papers.agreement.cells import ONE, SIX
from erlib.papers.study import Study
from erlib.reports.paper_numbers import paper_table

COLUMNS = ["switch", "system", "set", "measure", "here", "switched", "change", "paper", "seeds"]


def audit_table(study: Study, *, trained: bool = False) -> pd.DataFrame:
    """One row per switch, system, set and measure, mean over seeds; of `trained` models alone?

    Dropout while explaining: the kept model, on equal texts. While predicting: the maps' means.
    The others: the last epoch of a run that was trained with the switch.
    """
    numbers = study.numbers(study.of("audit")).dropna(subset="value")
    numbers = numbers[numbers["trained"] | (not trained)]
    values = numbers.groupby(["row", "column", "metric"], sort=False)["value"]
    means, seeds = values.mean(), values.size()
    rows = []
    for row, paper in dict.fromkeys(zip(numbers["row"], numbers["column"], strict=True)):
        switch, system, measure = row.split("|")
        here, switched = (float(means[row, paper, side]) for side in ("here", "switched"))
        printed = _printed(measure, system.split()[1], paper)
        n = int(seeds[row, paper, "here"])
        rows.append((switch, system, paper, measure, here, switched, switched - here, printed, n))
    return pd.DataFrame(rows, columns=COLUMNS)


def _printed(measure: str, variant: str, paper: str) -> float:
    """What the paper has of DBERT; NaN where it prints none."""
    if measure == SIX:
        return _r("table2")[f"DBERT|{paper}", variant]
    return _r("table1b_dbert")[SAME, paper] if (measure, variant) == (ONE, "Base") else np.nan


def _r(table: str) -> pd.Series:
    """The paper's Pearson's r by row and column."""
    cells = paper_table("agreement", table).query("metric == 'pearson_r'")
    return cells.set_index(["row", "column"])["mean"]
