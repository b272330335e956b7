"""What is missing from a study because it failed, and what stands in its place?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from textwrap import fill
from typing import Any, ParamSpec, TypeVar

import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from erlib.data.absent import MissingCorpus
from erlib.data.known import NeedsCorpus
from erlib.reports.markup import Html
from erlib.reports.style import figure_style, new_figure
from erlib.training.failures import FAILED, Diverged, RestsOnFailure

REMARK = "not measured"  # the only column of a table that is a hole
Given = ParamSpec("Given")
Made = TypeVar("Made")


def failed(tables: Iterable[pd.DataFrame]) -> set[Any]:
    """The descriptions, of runs or evaluations, that these results have no numbers of."""
    return {
        spec
        for table in tables
        if "status" in table
        for spec, status in zip(table["spec"], table["status"], strict=True)
        if status == FAILED
    }


def measured_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of results that have numbers."""
    return table[table["status"] != FAILED] if "status" in table else table


def or_hole(
    shown: Callable[[str], Made],
) -> Callable[[Callable[Given, Made]], Callable[Given, Made]]:
    """For what is made in the notebook itself: where a run that it needs failed, its own steps
    diverge, its texts are not there or only results are read, `shown` makes the artefact of a
    remark that says so."""

    def guarded(make: Callable[Given, Made]) -> Callable[Given, Made]:
        @wraps(make)
        def made(*args: Given.args, **options: Given.kwargs) -> Made:
            try:
                return make(*args, **options)
            except (RestsOnFailure, Diverged, NeedsCorpus, MissingCorpus) as error:
                return shown(str(error))

        return made

    return guarded


def as_table(why: str) -> pd.DataFrame:
    """A table of one remark."""
    return pd.DataFrame({REMARK: [why]})


def as_text(why: str) -> Html:
    """A paragraph."""
    return Html(Markup("<p>{}: {}.</p>").format(REMARK.capitalize(), why))


def as_figure(why: str) -> tuple[Figure, pd.DataFrame]:
    """An empty panel with the remark in its middle, and the remark as its numbers."""
    figure, [[axis]] = new_figure(height=1.2)
    with figure_style():
        axis.set_axis_off()
        axis.text(0.5, 0.5, fill(f"{REMARK.capitalize()}: {why}.", 90), ha="center", va="center")
    return figure, as_table(why)


def remark_of(numbers: pd.DataFrame) -> str:
    """Why these are no numbers; empty where they are."""
    return str(numbers[REMARK].iloc[0]) if REMARK in numbers else ""
