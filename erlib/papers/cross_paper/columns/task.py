"""Is the model right, where it learnt and elsewhere?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from erlib.metrics.task import counted_f1_macro
from erlib.papers.cells import Reading, Spec, of_answers
from erlib.papers.cross_paper import ground
from erlib.papers.cross_paper.columns import Specs, Subject, column
from erlib.papers.study import Study

F1 = of_answers(counted_f1_macro, 1.0)


def _mean_f1(answers: pd.DataFrame) -> float:
    """The mean over sets of the F1 on each."""
    codes, names = pd.factorize(answers["set"])
    label, predicted = (answers[name].to_numpy() for name in ("label", "predicted"))
    each = [counted_f1_macro(label[codes == i], predicted[codes == i]) for i in range(len(names))]
    return float(np.mean(each))


def _mean(study: Study, specs: Sequence[Spec]) -> Reading:
    tables = [study.texts(spec).set_index("id")[["label", "predicted"]] for spec in specs]
    answers = pd.concat([t.set_axis(f"{i} " + t.index).assign(set=i) for i, t in enumerate(tables)])
    return Reading(_mean_f1(answers), answers, _mean_f1)


@column("f1_in", metric="f1_macro", group="Task", title="F1", read=F1)
def f1_in(subject: Subject) -> Specs:
    """On test texts of the training corpus."""
    return subject.ask("predictions", "answered")


@column("f1_out", metric="f1_macro", group="Task", title="F1 elsewhere", read=_mean)
def f1_out(subject: Subject) -> Specs:
    """On test texts of other corpora, each with the same weight."""
    sets = ground.away(subject.settings)
    return tuple(s for test in sets for s in subject.ask("predictions", "answered", on=test))
