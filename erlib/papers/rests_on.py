"""On which corpora and runs does a report rest, and what of them falls short of the paper's?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd

from erlib.data import report_or_none
from erlib.data.standing import SAMPLE, STAND_IN, standing
from erlib.papers.cells import Cell, run_behind
from erlib.papers.grid import runs_of
from erlib.papers.hours import places_of
from erlib.papers.study import Study
from erlib.reports.criteria import Criterion, criteria
from erlib.reports.markup import counted
from erlib.training.runs import seedless

NOT_THERE = "not there: its rows are empty"
Corpus = tuple[str, str]  # name, source


def corpora_of(cells: Iterable[Cell]) -> list[Corpus]:
    """What the cells' models were trained and measured on, each once."""
    specs = (s for cell in cells for spec in cell.specs for s in (run_behind(spec), spec) if s)
    data = (spec.data for spec in specs)
    return list(dict.fromkeys((d.corpus, d.source) for d in data))


def table(study: Study) -> pd.DataFrame:
    """Every corpus of the report, and what it is to the set of its name."""
    rows = []
    for name, source in corpora_of(study.cells):
        if report_or_none(name, source) is None:
            rows.append({"corpus": name, "from": "–", "is": NOT_THERE, "why": "see the end"})
            continue
        found = standing(name, source)
        rows.append({"corpus": name, "from": source, "is": found.word, "why": found.why})
    return pd.DataFrame(rows)


def notes(study: Study) -> dict[str, str]:
    """By claim, which of the sets that decide it stand in for the paper's or are samples of them,
    and how many of its runs failed."""
    failed, found = set(study.ended("failed")), dict[str, str]()
    for name, criterion in criteria(study.paper.name).items():
        cells = cells_of(study, criterion)
        n = len(failed.intersection(runs_of(cells)))
        said = [*_standing(cells), *([f"{counted(n, 'run')} failed."] if n else [])]
        if said:
            found[name] = " ".join(said)
    return found


def lost(study: Study) -> dict[str, int]:
    """By claim, how many seeds of what it compares never met their checkpoint rule."""
    gone = [seedless(run) for run in study.ended("lost")]
    of_claim = {
        name: {seedless(run) for run in runs_of(cells_of(study, criterion))}
        for name, criterion in criteria(study.paper.name).items()
    }
    return {name: sum(run in runs for run in gone) for name, runs in of_claim.items()}


def cells_of(study: Study, claim: Criterion) -> list[Cell]:
    """The cells that a claim names; of those that a figure makes of others, the columns' own."""
    places = set(places_of(claim))
    columns = {place.column for place in places if not study.at(place)}
    return [
        *(cell for place in places for cell in study.at(place)),
        *(cell for cell in study.cells if cell.column in columns),
    ]


def _standing(cells: Iterable[Cell]) -> Iterator[str]:
    every = corpora_of(cells)
    there = [one for one in every if report_or_none(*one)]
    for word, said in ((STAND_IN, "a stand-in"), (SAMPLE, "a sample")):
        names = [name for name, source in there if standing(name, source).word == word]
        if names:
            part = " in part" if len(names) < len(every) else ""
            yield f"Rests{part} on {said}: {', '.join(sorted(names))}."
