"""Which models count, and what is left where none does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from erlib.config import DataSpec, Extraction, RunSpec
from erlib.papers.trained import deciding, untrained_models


def rows(*models: tuple[RunSpec, float]) -> pd.DataFrame:
    """What `run` reports of these runs and dev accuracies; half of the texts are of one class."""
    return pd.DataFrame(
        [{"spec": s, "dev_accuracy": accuracy, "dev_majority": 0.5} for s, accuracy in models]
    )


def test_a_model_must_be_above_the_majority_class_and_so_must_the_one_whose_rationales_it_reads():
    good, even = (RunSpec(DataSpec("movie_snippets"), seed=seed) for seed in (0, 1))
    of_good, of_even = (
        replace(good, data=replace(good.data, extract=Extraction(support, 20)))
        for support in (good, even)
    )
    models = rows((good, 0.6), (even, 0.5), (of_good, 0.9), (of_even, 0.9))
    assert untrained_models(models) == {even, of_even}


def test_where_there_is_no_majority_class_a_model_counts_as_trained():
    spans = rows((RunSpec(DataSpec("movie_snippets")), np.nan)).assign(dev_majority=np.nan)
    assert untrained_models(spans) == set()


def test_trained_seeds_decide_and_where_there_are_none_the_first_stands_alone():
    assert deciding({3: True, 4: False, 5: True}) == [3, 5]
    assert deciding({3: False, 4: False}) == [3]
    assert deciding({}) == []
