"""What does a step of training cost?"""

from __future__ import annotations

from collections.abc import Sequence

from erlib.config import RunSpec
from erlib.papers.cells import Reading, Spec, run_behind
from erlib.papers.cross_paper.columns import Specs, Subject, column
from erlib.papers.study import Study
from erlib.training.identity import run_hash
from erlib.training.stages import planned_steps
from erlib.training.store import open_store


def _seconds(study: Study, specs: Sequence[Spec]) -> Reading:
    """Of a run with all that it goes on from, over their steps; NaN of one that was resumed."""
    run: RunSpec | None = run_behind(specs[0])
    store, seconds, steps = open_store(study.settings.store), 0.0, 0
    while run is not None:
        sealed = store.get("runs", run_hash(run))
        facts = sealed.read("provenance.json") if sealed else {}
        seconds += float("nan") if facts.get("resumed", True) else float(facts["seconds"])
        steps, run = steps + planned_steps(run), run.start
    return Reading(seconds / steps)


@column("step_seconds", group="Cost", title="s per step", read=_seconds)
def step_seconds(subject: Subject) -> Specs:
    """Dev texts after every epoch included, as the store has it of whatever else ran beside."""
    return (subject.run,)
