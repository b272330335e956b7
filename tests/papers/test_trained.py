"""Which models count, why others do not, and what is left where none does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from erlib.config import DataSpec, Extraction, RunSpec, Teaching, load_profile, term
from erlib.papers.trained import (
    deciding,
    has_task,
    judged_by,
    too_few,
    untrained_models,
    why_untrained,
)

SPEC = RunSpec(DataSpec("movie_snippets"))


def rows(*models: tuple[RunSpec, float]) -> pd.DataFrame:
    """What `run` reports of these runs: the p-value of having learnt nothing."""
    return pd.DataFrame([{"spec": s, "dev_chance_p": p} for s, p in models])


def reading(support: RunSpec, **data: int) -> RunSpec:
    return replace(support, data=replace(support.data, extract=Extraction(support, 20), **data))


def test_a_model_must_be_above_chance_and_so_must_the_one_whose_rationales_it_reads():
    good, even = (SPEC.with_seed(seed) for seed in (0, 1))
    models = rows((good, 0.009), (even, 0.01), (reading(good), 0.001), (reading(even), 0.001))
    assert untrained_models(models) == {even, reading(even)}


def test_a_student_is_judged_by_its_teacher_and_what_leaves_answers_alone_by_its_start():
    still = replace(SPEC, start=SPEC, objective=(term("task", 0.0),))
    idle = replace(SPEC, start=SPEC, optimiser=replace(SPEC.optimiser, lr=0.0))
    student = replace(SPEC.with_seed(9), data=replace(SPEC.data, taught=Teaching(still)))
    assert judged_by(still) == judged_by(idle) == judged_by(student) == SPEC
    longer = replace(SPEC, start=SPEC)
    assert judged_by(longer) == longer


def test_a_lost_run_is_not_trained():
    assert untrained_models(rows((SPEC, np.nan))) == {SPEC}


@pytest.mark.parametrize(("asked", "enough"), [(None, True), (100, True), (99, False)])
def test_a_hundred_dev_texts_are_asked_for_or_all(asked, enough):
    spec = replace(SPEC, data=replace(SPEC.data, dev_rows=asked))
    assert too_few(spec) is not enough
    assert untrained_models(rows((spec, 0.001))) == (set() if enough else {spec})
    reader = reading(spec, dev_rows=200)
    assert too_few(reader) is not enough


def test_the_sentence_tells_not_learnt_from_too_few_texts_to_tell():
    few = replace(SPEC, data=replace(SPEC.data, dev_rows=8))
    named = lambda specs: ", ".join(f"seed {s.seed}" for s in specs)  # noqa: E731
    said = why_untrained([SPEC.with_seed(1), few.with_seed(2)], named)
    assert said.startswith("Not trained (trained means: macro-F1 above")
    assert "p < 0.01): seed 1. Too few dev texts to tell (fewer than 100)" in said
    assert said.endswith("as trained: seed 2.")
    assert why_untrained([few], named).startswith("Too few dev texts")
    assert "whose rationales they read" in why_untrained([reading(SPEC)], named)


def test_trained_seeds_decide_and_where_there_are_none_the_first_stands_alone():
    assert deciding({3: True, 4: False, 5: True}) == [3, 5]
    assert deciding({3: False, 4: False}) == [3]
    assert deciding({}) == []


@pytest.mark.parametrize("profile", ["cpu", "night", "paper"])
def test_runs_that_claims_rest_on_are_judged_by_a_hundred_dev_texts(profile):
    def asked(options, path=()):
        for name, value in options.items():
            if isinstance(value, dict):
                yield from asked(value, (*path, name))
            elif name == "dev_rows" and not any("student" in part for part in path):
                yield path, value

    assert [found for found in asked(load_profile(profile)) if found[1] < 100] == []


def test_a_run_of_the_explanation_loss_alone_has_no_task_to_learn():
    alone = replace(SPEC, objective=(term("explanation", guide="attention"),))
    assert untrained_models(rows((alone, np.nan))) == set() and not has_task(alone)
