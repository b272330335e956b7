"""What cells share: the run behind them, means over texts, and what is made once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from erlib.config import DataSpec, EvalSpec, RunSpec
from erlib.papers.cells import Cell, mean_over, of_spec, summary
from erlib.papers.study import Study, made_once

DATA = DataSpec("movie_snippets")
RUN = RunSpec(DATA)
ANSWERS = EvalSpec(RUN, DATA, "test", "predictions")


@pytest.fixture
def study():
    return Study(None, None, {"runs": pd.DataFrame([{"spec": RUN, "run": "one", "loss": 0.5}])})


def test_a_cell_tells_of_the_run_that_it_is_or_that_its_evaluation_is_of():
    assert all(Cell("table1", "", "", 0, (spec,), {}).run == RUN for spec in (RUN, ANSWERS))


def test_a_mean_is_over_the_texts_that_have_a_number(study):
    texts = pd.Series([1.0, np.nan, 4.0], index=["a", "b", "c"])
    found = mean_over(lambda study, specs: texts, chosen=True)(study, [RUN])
    assert found.value == 2.5 and list(found.texts.index) == ["a", "c"] and found.chosen


def test_a_number_of_another_spec_than_the_first(study):
    assert of_spec(1, summary("loss"))(study, [ANSWERS, RUN]).value == 0.5


def test_what_several_cells_read_is_made_once_of_a_study_and_of_each_argument(study):
    calls = []

    @made_once
    def doubled(study, number, *, more=0):
        calls.append((number, more))
        return 2 * number + more

    assert [doubled(study, 1), doubled(study, 1), doubled(study, 2), doubled(study, 1, more=3)]
    assert calls == [(1, 0), (2, 0), (1, 3)]
    assert doubled(Study(None, None, {}), 1) == 2 and len(calls) == 4  # another study's own
