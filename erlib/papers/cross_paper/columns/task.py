"""Is the model right, where it learnt and elsewhere?"""

from __future__ import annotations

from collections.abc import Sequence

from erlib.metrics.task import counted_f1_macro
from erlib.papers.cells import Reading, Spec, mean_reading, of_answers
from erlib.papers.cross_paper import ground
from erlib.papers.cross_paper.columns import Specs, Subject, column
from erlib.papers.study import Study

F1 = of_answers(counted_f1_macro, 1.0)


def _mean(study: Study, specs: Sequence[Spec]) -> Reading:
    return mean_reading([F1(study, [spec]) for spec in specs])


@column("f1_in", metric="f1_macro", group="Task", title="F1", read=F1)
def f1_in(subject: Subject) -> Specs:
    """On test texts of the training corpus."""
    return subject.ask("predictions", "answered")


@column("f1_out", metric="f1_macro", group="Task", title="F1 elsewhere", read=_mean)
def f1_out(subject: Subject) -> Specs:
    """On test texts of other corpora, each with the same weight."""
    sets = ground.away(subject.settings)
    return tuple(s for test in sets for s in subject.ask("predictions", "answered", on=test))
