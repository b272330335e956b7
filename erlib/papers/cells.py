"""What is one number of a paper, and how is it read from what was measured?

A cell is a number in the paper's own coordinates (table, row, column, metric) for one seed, with
the evaluations that give it. From a paper's cells come its grid, its tables and the evidence for
its claims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from erlib.config import EvalSpec, RunSpec
from erlib.metrics.faithfulness import aopc
from erlib.metrics.task import counted_accuracy, counted_f1_macro
from erlib.papers.readings import Reading

if TYPE_CHECKING:
    from erlib.papers.study import Study

Spec = RunSpec | EvalSpec
Read = Callable[["Study", Sequence[Spec]], Reading]
Texts = Callable[["Study", Sequence[Spec]], pd.Series]  # a number of each text, by the text's id


@dataclass(frozen=True)
class Cell:
    """The numbers of one place of a table, one per metric, for one seed.

    `seed` is the one that was wanted: a lost run's replacement stands in its place. `table` is the
    name of the table's CSV, or that of a figure ("figure-5"). All of `specs` are measured; `read`
    says by metric what to make of them; `decides` what a claim reads, where the table shows
    something else. `remark`: a line under the cell.
    """

    table: str
    row: str
    column: str
    seed: int
    specs: tuple[Spec, ...]
    read: Mapping[str, Read]
    remark: str = ""
    decides: Mapping[str, Read] = field(default_factory=dict)

    @property
    def run(self) -> RunSpec:
        """The run that it tells of."""
        run = run_behind(self.specs[0])
        assert run is not None
        return run


def run_behind(spec: Spec) -> RunSpec | None:
    """The run that a description is, or measures."""
    return spec.run if isinstance(spec, EvalSpec) else spec


def summary(name: str, scale: float = 1.0) -> Read:
    """A number of an evaluation's or a run's own row, times `scale`: of the model, not of texts."""

    def read(study: Study, specs: Sequence[Spec]) -> Reading:
        return Reading(scale * study.value(specs[0], name))

    return read


def mean_over(texts: Texts, *, chosen: bool = False) -> Read:
    """The mean over the texts that have a number; `chosen` by the model itself?"""

    def read(study: Study, specs: Sequence[Spec]) -> Reading:
        defined = texts(study, specs).dropna()
        return Reading(float(defined.mean()), defined, chosen=chosen)

    return read


def text_mean(column: str, scale: float = 1.0) -> Read:
    """The mean over the texts that have it of a column of the evaluation's table, times `scale`."""
    return mean_over(
        lambda study, specs: scale * study.texts(specs[0]).set_index("id")[column].astype(float)
    )


def text_aopc(column: str) -> Read:
    """The AOPC of a measure of faithfulness, Σ over bins / (bins + 1), mean over texts."""
    return mean_over(lambda study, specs: aopc(study.texts(specs[0]), column).droplevel("method"))


def of_answers(score: Callable[..., float], scale: float = 100.0) -> Read:
    """A score of the answers to all texts, such as F1: no mean over texts."""

    def statistic(answers: pd.DataFrame) -> float:
        return scale * float(score(answers["label"], answers["predicted"]))

    def read(study: Study, specs: Sequence[Spec]) -> Reading:
        answers = study.texts(specs[0]).set_index("id")[["label", "predicted"]]
        return Reading(statistic(answers), answers, statistic)

    return read


F1_MACRO = of_answers(counted_f1_macro)
ACCURACY = of_answers(counted_accuracy)


def mean_reading(readings: Sequence[Reading]) -> Reading:
    """The mean of several readings, text by text where all are means over the same texts; trained
    if all are."""
    value = float(np.mean([r.value for r in readings]))
    trained = all(r.trained for r in readings)
    texts = [r.texts for r in readings if isinstance(r.texts, pd.Series)]
    if len(texts) < len(readings) or any(set(t.index) != set(texts[0].index) for t in texts):
        return Reading(value, trained=trained)
    return Reading(value, pd.concat(texts, axis=1).mean(axis=1), trained=trained)


def of_spec(index: int, read: Read) -> Read:
    """What another read makes of one of the specs."""
    return lambda study, specs: read(study, [specs[index]])
