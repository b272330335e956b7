"""How far is each row from the Baseline in each column, and which distances are sure?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from erlib.metrics.estimates import Evidence, Mean, mean_of
from erlib.metrics.moderation import pool
from erlib.metrics.scales import SCALES
from erlib.papers.cross_paper.columns import COLUMNS, in_order
from erlib.papers.cross_paper.systems import BASELINE
from erlib.papers.measured import measure
from erlib.papers.study import Study, made_once
from erlib.reports.cells import Cell as Place
from erlib.reports.criteria import Contrast, Criterion, Difference

FEWEST = 3  # seeds; fewer decide nothing
LINE = ("row", "column", "effect", "low", "high", "standardised", "in its unit", "seeds", "texts",
        "decided")  # fmt: skip
LEVEL = 0.05  # of a column: each of its rows has its share (Bonferroni)
_SEEDS = Criterion(
    paper="cross_paper", claim="", where="", says="", why="", night="", given="", rule="PAIR",
    join="one", by="seeds", seeds=1, texts=1, contrasts=(), claims=(), metrics=(), excludes=(),
)  # fmt: skip


@dataclass(frozen=True)
class Effect:
    """A row's distance from the Baseline on the column's scale, turned so that more is better.

    `low` and `high`: the interval that all rows of the column share 95 % of; `unit`: the standard
    deviation of one run's number over seeds; `plain`: the distance in the metric's own unit.
    """

    row: str
    column: str
    value: float
    low: float
    high: float
    unit: float
    plain: float
    seeds: int
    texts: int

    @property
    def standardised(self) -> float:
        return self.value / self.unit if self.unit > 0 else float("nan")

    @property
    def decided(self) -> bool:
        """Is 0 outside the interval, and the interval made of enough seeds?"""
        return self.seeds >= FEWEST and bool(self.low > 0 or self.high < 0)


@made_once
def effects(study: Study) -> Mapping[tuple[str, str], Effect]:
    """(row, column) → its effect, of all that was measured beside a Baseline."""
    found: dict[tuple[str, str], Effect] = {}
    for column in in_order():
        cells = [cell for cell in study.of("grid") if cell.column == column.name]
        rows = [row for row in dict.fromkeys(cell.row for cell in cells) if row != BASELINE]
        made = of_table(study, "grid", rows, column.name, column.metric)
        found |= {(one.row, one.column): one for one in made}
    return found


def of_table(
    study: Study, table: str, rows: list[str], column: str, metric: str, *, before: str = BASELINE
) -> list[Effect]:
    """Of rows of a table in one of its columns."""
    declared = COLUMNS.get(column)
    scale = declared.scale if declared else "logit"
    side = declared.side if declared else 1
    contrasts = {row: _contrast(table, row, before, column, metric, scale) for row in rows}
    made = {row: _evidence(study, contrast) for row, contrast in contrasts.items()}
    seen = {row: one for row, one in made.items() if one is not None and np.isfinite(one.base)}
    return effects_of(seen, column, scale, side or 1)


def _evidence(study: Study, contrast: Contrast) -> Evidence | None:
    """None of what was not measured, or has no place on the scale: a share of all or nothing that
    is no mean over texts."""
    try:
        return measure(contrast, _SEEDS, study.read, 1).evidence
    except (ValueError, ZeroDivisionError):
        return None


def effects_of(
    evidence: Mapping[str, Evidence], column: str, scale: str, side: int
) -> list[Effect]:
    """The rows of one column, their spreads over seeds moderated by each other's."""
    spreads = {row: one.variance for row, one in evidence.items()}
    known = [v for v in spreads.values() if math.isfinite(v)]
    prior = pool(list(spreads.values()), [one.seeds for one in evidence.values()])
    unit = math.sqrt(np.mean(known) / 2) if known else float("nan")
    confidence = 1 - LEVEL / max(1, len(evidence))
    found = []
    for row, one in evidence.items():
        mean = mean_of(one, prior)
        low, high = _interval(mean, confidence)
        ends = (side * low, side * high)
        there = SCALES[scale]
        plain = there.back(there.of(one.base, one.texts) + mean.mean) - one.base
        found.append(
            Effect(row, column, side * mean.mean, min(ends), max(ends), unit, plain, one.seeds,
                   one.texts)
        )  # fmt: skip
    return found


def _interval(mean: Mean, confidence: float) -> tuple[float, float]:
    """NaN where one seed has no spread, or nothing varies."""
    if not mean.variance > 0:
        return float("nan"), float("nan")
    found = mean.interval(confidence)
    return found.low, found.high


def _contrast(table: str, row: str, before: str, column: str, metric: str, scale: str) -> Contrast:
    ends = (Place(table, row, column, metric), Place(table, before, column, metric))
    return Contrast(
        row, (Difference(*ends, less=None, paper=None),), scale, f"cross_paper/{column}", "PAIR"
    )


def table(study: Study) -> pd.DataFrame:
    """One line for each effect."""
    rows = [
        {
            "row": one.row,
            "column": one.column,
            "effect": one.value,
            "low": one.low,
            "high": one.high,
            "standardised": one.standardised,
            "in its unit": one.plain,
            "seeds": one.seeds,
            "texts": one.texts,
            "decided": "yes" if one.decided else "no",
        }
        for one in effects(study).values()
    ]
    return pd.DataFrame(rows, columns=LINE)


def means(study: Study, name: str = "grid") -> pd.DataFrame:
    """[row, column] of a table: means over seeds."""
    numbers = study.numbers(study.of(name))
    return numbers.pivot_table(
        index="row", columns="column", values="value", sort=False, aggfunc="mean"
    )


def by_run(study: Study) -> pd.DataFrame:
    """[(row, seed), column]: each trained run's numbers, turned so that more is better."""
    numbers = study.numbers(study.of("grid"))
    columns = {
        (column.name, column.metric): column for column in in_order() if column.group != "Cost"
    }
    rows = []
    for line in numbers.to_dict("records"):
        column = columns.get((line["column"], line["metric"]))
        if column is not None and np.isfinite(line["value"]) and line["trained"]:
            rows.append({**line, "value": (column.side or 1) * line["value"]})
    frame = pd.DataFrame(rows, columns=["row", "seed", "column", "value"])
    return frame.pivot_table(index=["row", "seed"], columns="column", values="value", sort=False)
