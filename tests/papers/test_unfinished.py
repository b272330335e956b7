"""Of a grid that is not finished nothing is decided too early, and what fell short is counted."""

from __future__ import annotations

import pandas as pd
import pytest

from erlib.catalogue import paper
from erlib.papers import rests_on
from erlib.papers.readings import Reading
from erlib.papers.study import Study
from erlib.parameters import check_parameters
from erlib.reports.cells import Cell as Place

PLACE = Place("table2", "Baseline", "Movies", "f1_macro")


@pytest.fixture
def study(monkeypatch):
    """ER lens's night before its results; every cell that is asked for has a reading."""
    given = {"profile": "night", "data": None, "seeds": None, "executor": "local"}
    settings = check_parameters("er_lens", {**given, "store": None, "device": None})
    monkeypatch.setattr(Study, "_reading", lambda self, cell, read: Reading(1.0))
    found = Study(paper("er_lens"), settings, {})
    found.lacking, found.runs = set(), pd.DataFrame({"spec": [], "status": []})
    return found


def test_a_place_is_read_when_every_seed_that_is_planned_for_it_is_there(study):
    assert list(study.read(PLACE)) == [0, 1, 2, 3, 4]
    study.lacking = {study.at(PLACE)[3].specs[0]}
    assert study.read(PLACE) is None
    other = Place("table2", "ER+Att", "Movies", "f1_macro")
    assert list(study.read(other)) == [0, 1, 2, 3, 4]


def test_lost_seeds_are_counted_for_the_claims_that_compare_their_system(study):
    column = Place("table3", "ER-C+AttR", "SST-Dev/ATT", "auc_x100")
    runs = [cell.specs[0].run for cell in study.at(column)[:2]]
    study.runs = pd.DataFrame(
        {"spec": [runs[0], runs[0].with_seed(98), runs[1]], "status": ["lost", "lost", "done"]}
    )
    lost = rests_on.lost(study)
    assert lost["ER-C12"] == 2 and lost["ER-C1"] == 0


def test_failed_runs_and_samples_are_noted_and_what_is_not_there_has_not_failed(study, monkeypatch):
    word = rests_on.standing("snli", "packaged")
    monkeypatch.setattr(rests_on, "standing", lambda name, source: word)
    monkeypatch.setattr(rests_on, "report_or_none", lambda name, source: word)
    runs = [cell.specs[0].run for cell in study.at(PLACE)[:2]]
    study.runs = pd.DataFrame({"spec": runs, "status": ["failed", "failed"]})
    study.lacking = {runs[1]}
    note = rests_on.notes(study)["ER-C1"]
    assert note.startswith("Rests on a sample: ") and note.endswith("1 run failed.")
