"""A grid that is stopped has settled the claims that cost least."""

from __future__ import annotations

import pytest

from erlib.catalogue import paper, papers
from erlib.papers.grid import runs_of
from erlib.papers.ranked import claims_first, ranked
from erlib.papers.rests_on import cells_of
from erlib.papers.study import Study
from erlib.parameters import check_parameters
from erlib.reports.criteria import criteria


def wanted(name, profile="cpu"):
    """The study before its results, and claim → the runs that it takes."""
    given = {"profile": profile, "data": None, "seeds": None, "executor": "local"}
    settings = check_parameters(name, {**given, "store": None, "device": None})
    study = Study(paper(name), settings, {})
    claims = {
        claim: runs_of(cells_of(study, criterion))
        for claim, criterion in criteria(name).items()
        if profile not in criterion.cannot
    }
    return study, claims


@pytest.mark.parametrize("name", [name for name in papers() if papers()[name].claims_text()])
def test_what_claims_ask_for_is_ranked_and_each_run_once_before_those_that_rest_on_it(name):
    study, claims = wanted(name)
    place = ranked(study)
    assert set(place) == {run for runs in claims.values() for run in runs}
    assert sorted(place.values()) == list(range(len(place)))
    assert all(place[run.start] < place[run] for run in place if run.start in place)


def test_a_claim_is_finished_before_a_dearer_one_is_begun():
    study, claims = wanted("er_lens")
    place = ranked(study)
    last = {name: max(map(place.get, runs)) for name, runs in claims.items() if runs}
    cheapest = min(last, key=last.get)
    assert last[cheapest] == len(set(claims[cheapest])) - 1  # nothing else was made before
    work = {n: sum(r.data.train_rows * r.optimiser.epochs for r in claims[n]) for n in last}
    assert work[cheapest] == min(work.values())


def test_runs_that_no_claim_asks_for_come_last():
    study, claims = wanted("er_lens")
    asked = {run for runs in claims.values() for run in runs}
    runs = runs_of(study.cells)
    assert not asked.issuperset(runs)
    ordered = claims_first(study.paper, study.settings, runs)
    assert sorted(map(asked.__contains__, ordered), reverse=True) == [
        *map(asked.__contains__, ordered)
    ]
    assert set(ordered) == set(runs)
