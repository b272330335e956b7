"""Which runs settle claims for the least work?

They are trained first, so that a grid that is stopped at any hour has decided as much as it could.
"""

from __future__ import annotations

from collections.abc import Sequence

from erlib.catalogue import Paper
from erlib.config import RunSpec
from erlib.papers.grid import runs_of
from erlib.papers.rests_on import cells_of
from erlib.papers.study import Study
from erlib.parameters import Settings
from erlib.reports.criteria import criteria

ALL = 10_000  # texts, where a description means all that a corpus has


def claims_first(paper: Paper, settings: Settings, runs: Sequence[RunSpec]) -> list[RunSpec]:
    """The runs in the order in which they are wanted; those that no claim asks for come last."""
    place = ranked(Study(paper, settings, {}))
    return sorted(runs, key=lambda run: place.get(run, len(place)))


def ranked(study: Study) -> dict[RunSpec, int]:
    """Run → its place: the claim first for which the least is left to train, then the next.

    Claims that the profile cannot decide have no say, and what no claim asks for has no place.
    """
    profile = study.settings.profile
    wanted = {
        name: runs_of(cells_of(study, claim))
        for name, claim in criteria(study.paper.name).items()
        if profile not in claim.cannot
    }
    place: dict[RunSpec, int] = {}
    while wanted:
        left = {name: [run for run in runs if run not in place] for name, runs in wanted.items()}
        cheapest = min(left, key=lambda name: sum(map(_work, left[name])))
        for run in left[cheapest]:
            place[run] = len(place)
        del wanted[cheapest]
    return place


def _work(run: RunSpec) -> int:
    """Texts that it reads."""
    return (run.data.train_rows or ALL) * run.optimiser.epochs
