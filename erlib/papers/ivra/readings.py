"""How are IvRA's numbers read from evaluations and from what runs logged?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from erlib.config import RunSpec
from erlib.metrics.directions import average_relative_gain
from erlib.papers.cells import ACCURACY, Read, Reading, Spec, summary, text_aopc, text_mean
from erlib.papers.ivra.systems import CRITERIA, LOSSES, Task
from erlib.papers.study import Study

# criterion → what its value is called in the paper's tables, in `metrics.directions`, and in logs
METRICS = {"SIM": "simulatability", "COMP": "comp_aopc", "SUFF": "suff_aopc",
           "CONS": "consistency_spearman"}  # fmt: skip
DIRECTIONS = {"SIM": "simulatability", "COMP": "ivra_comprehensiveness",
              "SUFF": "ivra_sufficiency", "CONS": "consistency"}  # fmt: skip
LOGGED = {c: f"train_{LOSSES.get(c, 'simulatability')}" for c in CRITERIA}
READS: dict[str, Read] = {
    "SIM": text_mean("simulated"),
    "COMP": text_aopc("comprehensiveness"),
    "SUFF": text_aopc("sufficiency"),
    "CONS": summary("consistency"),
}
SIM_PER_CENT = text_mean("simulated", 100.0)
SPAN_F1 = summary("token_f1", 100.0)


def answers_read(task: Task) -> Read:
    """Accuracy, or the token F1 of spans, in points."""
    return SPAN_F1 if task.spans else ACCURACY


def over_tasks(read: Read) -> Read:
    """The mean over evaluations, one of each task."""

    def mean(study: Study, specs: Sequence[Spec]) -> Reading:
        found = [read(study, (spec,)) for spec in specs]
        if len(found) == 1:
            return found[0]
        value = float(np.mean([r.value for r in found]))
        if any(r.texts is None for r in found):
            return Reading(value)
        named = [pd.DataFrame({"value": r.texts}).assign(task=i) for i, r in enumerate(found)]
        joined = pd.concat(t.set_axis(t["task"].astype(str) + " " + t.index) for t in named)
        return Reading(value, joined, _mean_of_means)

    return mean


def _mean_of_means(texts: pd.DataFrame) -> float:
    return float(texts.groupby("task")["value"].mean().mean())


def difference(read: Read) -> Read:
    """The first evaluation's value minus the second's."""

    def minus(study: Study, specs: Sequence[Spec]) -> Reading:
        first, second = (read(study, (spec,)).value for spec in specs)
        return Reading(first - second)

    return minus


def gain(criterion: str, *, relative: bool) -> Read:
    """The mean gain of the second half of the evaluations over the first, one of each task in
    both; positive is better. `relative`: in % of the first (metrics.md §8)."""

    def read(study: Study, specs: Sequence[Spec]) -> Reading:
        values = [READS[criterion](study, (spec,)).value for spec in specs]
        half = len(values) // 2
        first, second = (
            {str(i): v for i, v in enumerate(part)} for part in (values[:half], values[half:])
        )
        found = average_relative_gain(DIRECTIONS[criterion], first, second)
        plain = sum(found.difference.values()) / half
        return Reading(found.arg if relative else plain)

    return read


ARG = {criterion: gain(criterion, relative=True) for criterion in CRITERIA}
PLAIN = {criterion: gain(criterion, relative=False) for criterion in CRITERIA}


def logged(column: str, epoch: int, place: int = 0) -> Read:
    """What a run logged in its first epoch (0) or its last (-1)."""

    def read(study: Study, specs: Sequence[Spec]) -> Reading:
        run = specs[place]
        assert isinstance(run, RunSpec)
        return Reading(float(study.history(run)[column].iloc[epoch]))

    return read
