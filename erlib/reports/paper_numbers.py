"""How do our numbers stand beside the paper's?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from erlib.catalogue import paper as paper_named
from erlib.errors import unknown

ABSENT = "not in the paper"  # the note of a cell that only we have
COLUMNS = ("row", "column", "metric", "ours", "ours_std", "n", "paper", "paper_std", "difference",
           "note")  # fmt: skip


def paper_table(paper: str, table: str) -> pd.DataFrame:
    """A table of a paper as long rows: row, column, metric, mean, std, note, and `printed`.

    `printed` is the cell as the paper prints it ("~50", "+"); `mean` is NaN where that is no
    number. A cell that is absent or unreadable has an empty `printed`, and `note` says so.
    """
    known = paper_named(paper).tables()
    if table not in known:
        raise unknown(f"table of {paper}", table, known)
    frame = pd.read_csv(known[table], dtype=str, keep_default_na=False)
    frame["printed"] = frame["mean"]
    for name in ("mean", "std"):
        frame[name] = pd.to_numeric(frame[name], errors="coerce")
    return frame[["row", "column", "metric", "mean", "std", "note", "printed"]]


@dataclass(frozen=True)
class Beside:
    """Our numbers beside the paper's: `long` is one row per cell, `wide()` is for reading.

    `digits`: of all numbers, or of each metric's. `remarks`: (row, column, metric) → what a reader
    has to know of that cell. `labels`: what a reader calls a row or column.
    """

    long: pd.DataFrame
    names: Mapping[str, str]
    digits: int | Mapping[str, int] = 2
    remarks: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def wide(self) -> pd.DataFrame:
        """Rows × columns; a cell has ours, the paper's, and the difference with n; "–": missing.

        Columns that we measured come first.
        """
        frame = self.long.assign(
            cell=[self._cell(cell) for cell in self.long.to_dict("records")],
            heading=[self._heading(c) for c in self.long["column"]],
        )
        many = self.long.duplicated(["row", "column"]).any()  # several metrics at one place
        index = ["row", "metric"] if many else ["row"]
        order = frame[index].drop_duplicates()
        table = frame.pivot(index=index, columns="heading", values="cell")
        ours_first = frame.sort_values("n", key=lambda n: n == 0, kind="stable")
        table = table.reindex(columns=list(dict.fromkeys(ours_first["heading"])))
        table = table.reindex(pd.MultiIndex.from_frame(order) if many else order["row"])
        table.columns.name = None
        table.index.names = [None if name == "row" else name for name in table.index.names]
        table = table.astype(object).where(table.notna(), "–")
        return table.rename(index=self.labels, columns=self.labels)

    def notes(self) -> list[str]:
        """Why cells of the paper are missing, each reason once, with the places of those cells."""
        missing = self.long[self.long["paper"].isna() & (self.long["note"] != "")]
        return [
            f"{note[0].upper()}{note[1:]}: {', '.join(dict.fromkeys(self._places(cells)))}."
            for note, cells in missing.groupby("note", sort=False)
        ]

    def _places(self, cells: pd.DataFrame) -> Iterator[str]:
        """Of each metric the columns or rows that are missing, or its name if there is nothing."""
        for metric, part in cells.groupby("metric", sort=False):
            whole = self.long[self.long["metric"] == metric]
            if len(part) == len(whole) < len(self.long):
                yield str(metric)
                continue
            names = [(axis, part[axis].unique()) for axis in ("column", "row")]
            partly = {axis: whole[axis].isin(found).sum() > len(part) for axis, found in names}
            fewest = min(names, key=lambda name: (partly[name[0]], len(name[1])))[1]
            yield from (self.labels.get(name, name).replace("\n", ", ") for name in fewest)

    def _heading(self, column: str) -> str:
        return f"{self.names[column]}\nfor {column}" if column in self.names else column

    def _cell(self, cell: Mapping[Any, Any]) -> str:
        digits = self.digits if isinstance(self.digits, int) else self.digits[cell["metric"]]
        lines = [
            _plus_minus(cell["ours"], cell["ours_std"], digits),
            f"paper {_plus_minus(cell['paper'], cell['paper_std'], digits)}",
        ]
        difference = cell["difference"]
        if isinstance(difference, float) and np.isfinite(difference):
            lines.append(f"{difference:+.{digits}f}, n={cell['n']}".replace("-", "−"))
        elif cell["n"]:
            lines.append(f"n={cell['n']}")
        if remark := self.remarks.get((cell["row"], cell["column"], cell["metric"])):
            lines.append(remark)
        return "\n".join(lines)


def beside(
    ours: pd.DataFrame,
    paper: str,
    table: str,
    *,
    metric: str | None = None,
    rows: Sequence[str] | None = None,
    stands_for: Mapping[str, str] | None = None,
    digits: int | Mapping[str, int] = 2,
    labels: Mapping[str, str] | None = None,
    absent: str = ABSENT,
) -> Beside:
    """Ours (mean ± std over seeds, with n) beside the paper's cells and the difference.

    `ours`: one row per seed with columns `row`, `column`, `value` in the paper's names and unit
    (and `metric` if the table has several; `remark` for a line of text under a cell). `metric`,
    `rows` keep only those of the paper.
    `stands_for`: our corpus → the paper's column that it stands in for; `column` may hold either.
    `labels`: what a reader calls rows and columns, where it is not as the paper's file has it.
    `absent`: the note of what only we have.
    """
    theirs = paper_table(paper, table)
    if metric is not None:
        if metric not in set(theirs["metric"]):
            raise unknown(f"metric of {paper} {table}", metric, set(theirs["metric"]))
        theirs = theirs[theirs["metric"] == metric]
    if rows is not None:
        known = set(theirs["row"]) | set(ours["row"])
        for row in rows:
            if row not in known:
                raise unknown(f"row of {paper} {table}", row, set(theirs["row"]))
        theirs = theirs[theirs["row"].isin(rows)]
    names = dict(stands_for or {})
    lost = {"row", "column", "value"} - set(ours.columns)
    if lost:
        raise ValueError(f"ours lacks the columns {', '.join(sorted(lost))}")
    for ours_name, column in names.items():
        if column not in set(theirs["column"]):
            raise unknown(f"column of {paper} {table}", column, set(theirs["column"]))
        ours = ours.assign(column=ours["column"].replace(ours_name, column))
    if "metric" not in ours:
        if theirs["metric"].nunique() > 1:
            raise ValueError(f"{paper} {table} has several metrics: give metric= or a column")
        ours = ours.assign(metric=theirs["metric"].iloc[0])
    keys = ["row", "column", "metric"]
    values = ours.groupby(keys, sort=False)["value"]
    mean = values.agg(ours="mean", ours_std=lambda v: v.std(ddof=1), n="count").reset_index()
    long = theirs.rename(columns={"mean": "paper", "std": "paper_std"}).merge(
        mean, on=keys, how="outer", sort=False
    )
    long = _in_order(long, theirs, mean)
    long["n"] = long["n"].fillna(0).astype(int)
    long["note"] = long["note"].fillna(absent)
    long["difference"] = long["ours"] - long["paper"]
    remarks = {}
    if "remark" in ours:
        said = ours[ours["remark"] != ""]
        remarks = dict(zip(zip(*(said[k] for k in keys), strict=True), said["remark"], strict=True))
    return Beside(
        long[list(COLUMNS)].reset_index(drop=True),
        {v: k for k, v in names.items()},
        digits,
        remarks,
        labels or {},
    )


def _in_order(long: pd.DataFrame, theirs: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """The paper's order of rows, columns and metrics first, then ours."""
    for name in ("metric", "column", "row"):
        order = list(dict.fromkeys([*theirs[name], *ours[name]]))
        long = long.sort_values(name, key=lambda s, o=order: s.map(o.index), kind="stable")
    return long


def _plus_minus(mean: object, std: object, digits: int) -> str:
    if not isinstance(mean, float) or not np.isfinite(mean):
        return "–"
    text = f"{mean:.{digits}f}"
    if isinstance(std, float) and np.isfinite(std):
        text += f" ± {std:.{digits}f}"
    return text.replace("-", "−")
