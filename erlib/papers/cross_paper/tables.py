"""What do the notebook's tables hold?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.metrics.planted import USES
from erlib.metrics.stats import t_interval
from erlib.papers.cross_paper import effects
from erlib.papers.cross_paper.columns import in_order
from erlib.papers.cross_paper.rows import ROWS
from erlib.papers.study import Study

Table = tuple[pd.DataFrame, pd.DataFrame]  # for reading, and the numbers


def grid(study: Study) -> Table:
    """Every row by every column: means over seeds with their standard deviations."""
    numbers = study.numbers(study.of("grid"))
    found = numbers.groupby(["row", "column"], sort=False)["value"].agg(["mean", "std", "count"])
    titles = {c.name: _titled(c.title, c.side) for c in in_order()}
    rows = []
    for row in dict.fromkeys(numbers["row"]):
        said = {"row": row}
        for name, title in titles.items():
            if (row, name) in found.index:
                said[title] = _pm(*found.loc[(row, name), ["mean", "std"]])
        rows.append(said)
    return pd.DataFrame(rows).fillna("–"), found.reset_index()


def _titled(title: str, side: int) -> str:
    return f"{title} {'↑' if side > 0 else '↓' if side < 0 else ''}".strip()


def _pm(mean: float, std: float) -> str:
    if not np.isfinite(mean):
        return "–"
    return f"{mean:.2f}" + (f" ± {std:.2f}" if np.isfinite(std) else "")


def planted(study: Study) -> Table:
    """Is the rule used, and which attribution finds its words? Means and 95 % intervals over seeds.

    Where a model does not use a rule there is no reason to find.
    """
    numbers = study.numbers(study.of("planted"))
    rows, shown = [], []
    for (row, rule), each in numbers.assign(
        rule=numbers["column"].str.partition("|")[0], what=numbers["column"].str.partition("|")[2]
    ).groupby(["row", "rule"], sort=False):
        line = {"row": row, "rule": rule}
        for what, values in each.groupby("what", sort=False)["value"]:
            values = values.dropna()
            if values.empty:
                continue
            low, high = interval(values)
            rows.append({**line, "what": what, "mean": values.mean(), "low": low, "high": high,
                         "seeds": len(values)})  # fmt: skip
            said = _within(values.mean(), low, high)
            if what == "used":
                said = f"{'yes' if values.mean() >= USES else 'does not use it'}, {said}"
            line[what] = said
        shown.append(line)
    return (
        pd.DataFrame(shown, columns=None if shown else ["row", "rule"])
        .fillna("–")
        .rename(columns={"used": "uses it?"}),
        pd.DataFrame(rows),
    )


def interval(values: pd.Series) -> tuple[float, float]:
    """Student's, within the range of a share."""
    found = t_interval(values.to_numpy(dtype=float))
    return max(0.0, found.low) if np.isfinite(found.low) else found.low, min(1.0, found.high)


def _within(mean: float, low: float, high: float) -> str:
    return f"{mean:.2f}" + (f" ({low:.2f} to {high:.2f})" if np.isfinite(low) else "")


def not_measured(study: Study) -> dict[str, str]:
    """What of the grid this profile leaves out."""
    there = {(cell.row, cell.column) for cell in study.of("grid")}
    rows = [name for name in ROWS if name not in {row for row, _ in there}]
    columns = [c.title for c in in_order() if c.name not in {column for _, column in there}]
    return {"rows": ", ".join(rows) or "none", "columns": ", ".join(columns) or "none"}


def effect_table(study: Study) -> pd.DataFrame:
    """Every effect with its interval."""
    return effects.table(study)
