"""Which cells of a paper's tables does a pattern name, and what is printed in them?"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from erlib.errors import unknown
from erlib.reports.paper_numbers import paper_table

AXES = ("table", "row", "column", "metric")
Pattern = Mapping[str, str]  # axis → name; * in a name stands for anything


@dataclass(frozen=True)
class Cell:
    """One number in a paper's own coordinates."""

    table: str
    row: str
    column: str
    metric: str


@cache
def _table(paper: str, name: str) -> dict[Cell, tuple[float, float]]:
    """Cell → mean and std as printed, in the table's order."""
    frame = paper_table(paper, name)
    return {
        Cell(name, row.row, row.column, row.metric): (row.mean, row.std)
        for row in frame.itertuples(index=False)
    }


def matching(paper: str, pattern: Pattern) -> list[tuple[Cell, dict[str, str]]]:
    """Every cell that the pattern names, in the table's order, with what each axis's * stands for.

    A table with one metric needs no `metric`. A name that the table does not have is refused.
    """
    if "table" not in pattern:
        raise ValueError("a contrast needs a 'table', or 'at' for what is not printed")
    table = _table(paper, pattern["table"])
    metrics = list(dict.fromkeys(cell.metric for cell in table))
    if "metric" not in pattern and len(metrics) > 1:
        raise ValueError(f"{pattern['table']} has several metrics, name one: {', '.join(metrics)}")
    sought = {"metric": metrics[0], **pattern}
    found = []
    for cell in table:
        stars = {axis: _captured(sought[axis], getattr(cell, axis)) for axis in AXES[1:]}
        if None not in stars.values():
            found.append((cell, {axis: text for axis, text in stars.items() if text}))
    if not found:
        raise _absent(paper, sought, table)
    return found


def _captured(pattern: str, name: str) -> str | None:
    """What * stands for when the pattern fits the name, "" without one; None if it does not fit."""
    if "*" not in pattern:
        return "" if pattern == name else None
    fits = re.fullmatch(re.escape(pattern).replace(r"\*", "(.+)"), name)
    return fits[1] if fits else None


def _absent(paper: str, sought: Pattern, table: Collection[Cell]) -> ValueError:
    for axis in AXES[1:]:
        known = {getattr(cell, axis) for cell in table}
        if all(_captured(sought[axis], name) is None for name in known):
            return unknown(f"{axis} of {paper} {sought['table']}", sought[axis], known)
    named = ", ".join(f"{axis} '{sought[axis]}'" for axis in AXES[1:])
    return ValueError(f"{paper} {sought['table']} has no cell with {named}")


def printed(paper: str, cell: Cell, what: Literal["mean", "std"] = "mean") -> float:
    """The number in a cell, or its std; NaN where the paper prints none."""
    mean, std = _table(paper, cell.table)[cell]
    return std if what == "std" else mean
