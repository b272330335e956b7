"""On which corpora does a report rest, and which of them stand in for the paper's?"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from erlib.data import report_or_none
from erlib.data.standing import STAND_IN, standing
from erlib.papers.cells import Cell
from erlib.papers.hours import places_of
from erlib.papers.study import Study, run_behind
from erlib.reports.criteria import Criterion, criteria

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
    """By claim, which of the sets that decide it stand in for the paper's."""
    found = {name: _note(cells_of(study, c)) for name, c in criteria(study.paper.name).items()}
    return {name: note for name, note in found.items() if note}


def cells_of(study: Study, claim: Criterion) -> list[Cell]:
    """The cells that a claim names; of those that a figure makes of others, the columns' own."""
    places = set(places_of(claim))
    columns = {place.column for place in places if not study.at(place)}
    return [
        *(cell for place in places for cell in study.at(place)),
        *(cell for cell in study.cells if cell.column in columns),
    ]


def _note(cells: Iterable[Cell]) -> str:
    every = corpora_of(cells)
    there = [one for one in every if report_or_none(*one)]
    names = [name for name, source in there if standing(name, source).word == STAND_IN]
    if not names:
        return ""
    part = " in part" if len(names) < len(every) else ""
    return f"Rests{part} on a stand-in: {', '.join(sorted(names))}."
