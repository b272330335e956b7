"""What follows from the grid? Sentences, each made of an interval that supports it, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from erlib.metrics.stats import t_interval
from erlib.papers.cross_paper import effects
from erlib.papers.cross_paper.columns import COLUMNS
from erlib.papers.cross_paper.effects import Effect, of_table
from erlib.papers.cross_paper.figures import FAITHFUL, PLAUSIBLE, RIGHT
from erlib.papers.cross_paper.groups import correlations
from erlib.papers.cross_paper.systems import BASELINE
from erlib.papers.study import Study, made_once

PLAIN = ("er_lens_normalised_comprehensiveness", "regex_normalised_comprehensiveness",
         "ivra_comprehensiveness")  # fmt: skip
FEWEST = 3  # seeds, for what is compared over all rows
NONE = "None: no interval of this profile leaves 0 out."


@dataclass(frozen=True)
class Finding:
    """A sentence, and the interval that supports it."""

    said: str
    support: str


def table(study: Study) -> pd.DataFrame:
    """Those that an interval supports."""
    found = [one for ask in ASKED for one in ask(study)]
    rows = [{"finding": one.said, "supported by": one.support} for one in found]
    return pd.DataFrame(rows or [{"finding": NONE, "supported by": ""}])


def sure(study: Study, column: str, side: int, rows: Iterable[str] | None = None) -> list[Effect]:
    """Rows that are better (1) or worse (−1) than the Baseline beyond doubt, the farthest first."""
    wanted = None if rows is None else set(rows)
    found = [
        one
        for one in effects.effects(study).values()
        if one.column == column and one.decided and one.value * side > 0
        if wanted is None or one.row in wanted
    ]
    return sorted(found, key=lambda one: -abs(one.value))


def measured(study: Study, column: str) -> int:
    """How many rows have an effect in a column."""
    return sum(one.column == column for one in effects.effects(study).values())


def _named(found: Iterable[Effect]) -> str:
    return ", ".join(one.row for one in found)


def _interval(one: Effect) -> str:
    scale = COLUMNS[one.column].scale if one.column in COLUMNS else "logit"
    on = "" if scale == "identity" else f" on the {scale} scale"
    return f"{one.row}: {one.plain:+.3f}; {one.low:+.2f} to {one.high:+.2f}{on}".replace("-", "−")


def _of_column(study: Study, column: str, better: str, worse: str) -> Iterator[Finding]:
    n = measured(study, column)
    for side, said in ((1, better), (-1, worse)):
        if found := sure(study, column, side):
            yield Finding(f"{len(found)} of {n} {said}: {_named(found)}.", _interval(found[0]))


def plausible(study: Study) -> Iterator[Finding]:
    """Do explanations look more like rationales?"""
    yield from _of_column(
        study, PLAUSIBLE, "ways of training make explanations more plausible (AUC)",
        "make them less plausible (AUC)",
    )  # fmt: skip


def faithful(study: Study) -> Iterator[Finding]:
    """And are they closer to what the model does?"""
    yield from _of_column(
        study, FAITHFUL, "make explanations more faithful (normalised AOPC)",
        "make them less faithful (normalised AOPC)",
    )  # fmt: skip


def credited(study: Study) -> Iterator[Finding]:
    """Which gains by erasure are gains of the range, and not of the order of words?"""
    plain = {one.row: one for name in PLAIN for one in sure(study, name, 1)}
    normalised = {one.row for one in sure(study, FAITHFUL, 1)}
    only = [one for row, one in plain.items() if row not in normalised]
    if only and measured(study, FAITHFUL):
        yield Finding(
            f"{len(only)} of {len(plain)} rows that a plain comprehensiveness credits are not "
            f"credited by normalised AOPC: {_named(only)}.",
            _interval(only[0]),
        )


def right(study: Study) -> Iterator[Finding]:
    """What does it cost in answers?"""
    yield from _of_column(study, RIGHT, "answer better (F1)", "answer worse (F1)")


def found(study: Study) -> Iterator[Finding]:
    """Which attribution finds a planted word, whatever the training?"""
    numbers = study.numbers(study.of("planted"))
    numbers = numbers[numbers["metric"] == "found_at_k"].dropna(subset="value")
    if numbers.empty:
        return
    parts = numbers["column"].str.partition("|")
    numbers = numbers.assign(rule=parts[0], method=parts[2])
    for rule, each in numbers[~numbers["method"].isin(["own", "all"])].groupby("rule", sort=False):
        by_seed = each.pivot_table(index="seed", columns="method", values="value")
        best = by_seed.mean().idxmax()
        beaten = {}
        for other in by_seed.columns.drop(best):
            differences = (by_seed[best] - by_seed[other]).dropna()
            if len(differences) >= FEWEST and (low := t_interval(differences).low) > 0:
                beaten[other] = (low, t_interval(differences).high)
        if beaten:
            nearest = min(beaten, key=lambda name: beaten[name][0])
            yield Finding(
                f"The rule “{rule}”: {best} finds what was planted more often than "
                f"{', '.join(beaten)}, on the average over ways of training.",
                f"over {nearest}: {beaten[nearest][0]:+.2f} to {beaten[nearest][1]:+.2f}, "
                f"{len(by_seed)} seeds",
            )


@made_once
def planted_effects(study: Study, table: str, column: str, metric: str) -> list[Effect]:
    """Of a column of the tables of planted reasons."""
    rows = dict.fromkeys(cell.row for cell in study.of(table) if cell.column == column)
    return of_table(study, table, [row for row in rows if row != BASELINE], column, metric)


def truer(study: Study) -> Iterator[Finding]:
    """Are explanations that look better also truer?"""
    by_row = {e.row: e for e in planted_effects(study, "planted", "single|all", "found_at_k")}
    nicer = [one.row for one in sure(study, PLAUSIBLE, 1) if one.row in by_row]
    for side, said in ((1, "finds the planted word more often"), (-1, "finds it less often")):
        moved = [e for row in nicer if (e := by_row[row]).decided and e.value * side > 0]
        if moved:
            yield Finding(
                f"Of {len(nicer)} rows with more plausible explanations, {len(moved)} "
                f"{said} than the Baseline: {_named(moved)}.",
                _interval(moved[0]),
            )


def hidden(study: Study) -> Iterator[Finding]:
    """Is a spurious word believed as much as before, and shown less?"""
    followed = {e.row: e for e in planted_effects(study, "spurious", "followed", "followed")}
    shown = planted_effects(study, "spurious", "all", "found_at_k")
    believed = {row for row, e in followed.items() if not (e.decided and e.value < 0)}
    hide = [one for one in shown if one.row in believed and one.decided and one.value < 0]
    if hide:
        yield Finding(
            f"{_named(hide)}: the spurious word is not believed less than by the Baseline, and "
            "heat maps show it less.",
            _interval(hide[0]),
        )


def alike(study: Study) -> Iterator[Finding]:
    """Do plausibility and faithfulness rise together?"""
    numbers = effects.by_run(study)
    wanted = [name for name in (PLAUSIBLE, FAITHFUL, RIGHT) if name in numbers]
    for pair in combinations(wanted, 2):
        one = correlations(numbers[list(pair)], "models").iloc[0]
        if np.isfinite(one["low"]) and (one["low"] > 0 or one["high"] < 0):
            a, b = (COLUMNS[name].title for name in pair)
            yield Finding(
                f"Over models, {a} and {b} {'rise together' if one['rho'] > 0 else 'part'}.",
                f"ρ = {one['rho']:.2f}, {one['low']:.2f} to {one['high']:.2f}".replace("-", "−"),
            )


ASKED: tuple[Callable[[Study], Iterator[Finding]], ...] = (
    plausible, faithful, credited, right, found, truer, hidden, alike,
)  # fmt: skip

# goal → the column that measures it
GOALS = {
    "explanations that look like people's": PLAUSIBLE,
    "explanations that say what the model does": FAITHFUL,
    "the same explanation from every seed": "jaccard",
    "attributions that agree": "kendall",
    "answers that withstand harmless changes": "attack_success_rate",
    "right answers on other texts": "f1_out",
}


def advice(study: Study) -> pd.DataFrame:
    """What to use when: for each goal the row that is surest to serve it and costs no F1."""
    worse = {one.row for one in sure(study, RIGHT, -1)}
    rows = []
    for goal, column in GOALS.items():
        serving = sure(study, column, 1)
        kept = [one for one in serving if one.row not in worse]
        costly = f"; {_named(serving)} at the price of F1" if serving and not kept else ""
        rows.append(
            {
                "if you want": goal,
                "use": kept[0].row if kept else f"nothing here is sure to help{costly}",
                "since": _interval(kept[0]) if kept else "",
            }
        )
    return pd.DataFrame(rows)
