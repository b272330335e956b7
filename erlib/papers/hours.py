"""How many hours would one more seed of all that a claim compares take on this machine?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from erlib.config import EvalSpec
from erlib.papers.cells import Cell, Spec
from erlib.papers.study import Study
from erlib.reports.cells import Cell as Place
from erlib.reports.criteria import Criterion, criteria
from erlib.training.making import with_origins
from erlib.training.store import open_store


def hours_per_seed(study: Study) -> dict[str, float]:
    """By claim, the mean over its seeds of what their runs and evaluations took; claims without a
    cell that was measured are left out."""
    found = {}
    for name, criterion in criteria(study.paper.name).items():
        cells = [cell for place in set(places_of(criterion)) for cell in study.at(place)]
        seeds = {cell.seed for cell in cells}
        if seeds:
            found[name] = sum(_seconds(study, _specs(cells))) / len(seeds) / 3600
    return found


def places_of(criterion: Criterion) -> Iterator[Place]:
    """Every place of the paper that a claim names."""
    for contrast in criterion.contrasts:
        for difference in contrast.differences:
            ends = (difference.before, difference.after, *(difference.less or ()))
            yield from (end for end in ends if end is not None)


def _specs(cells: Iterable[Cell]) -> set[Spec]:
    """What the cells are read from, and the runs that it rests on."""
    specs = {spec for cell in cells for spec in cell.specs}
    runs = [s.run if isinstance(s, EvalSpec) else s for s in specs]
    return specs | set(with_origins([run for run in runs if run is not None]))


def _seconds(study: Study, specs: Iterable[Spec]) -> Iterator[float]:
    store = open_store(study.settings.store)
    for row in (study.rows[spec] for spec in specs if spec in study.rows):
        kind, name = ("evals", row["eval"]) if "eval" in row else ("runs", row["run"])
        sealed = store.get(kind, name)
        if sealed is not None and (sealed.path / "provenance.json").exists():
            yield float(sealed.read("provenance.json").get("seconds", 0.0))
