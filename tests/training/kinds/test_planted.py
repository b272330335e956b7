from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from datasets import Dataset

from erlib.config import DataSpec, EvalSpec
from erlib.training.evaluations import Evaluation
from erlib.training.kinds.planted import planted
from erlib.training.kinds.planted_answers import _means, planted_answers

WORDS = {
    "one": ["a", "crimson", "film"],
    "two": ["indigo", "and", "dull", "it", "is"],
    "clean": ["a", "dull", "film"],
}


def _rows():
    return Dataset.from_dict({"id": list(WORDS), "words": list(WORDS.values())})


def _spec(kind, corpus="movies+single"):
    return EvalSpec(None, DataSpec(corpus, "local"), "test", kind)


def test_the_largest_score_is_looked_for_among_planted_words_and_chance_is_one_word_s_share():
    scores = [[0.1, -0.9, 0.3], [0.1, 0.0, 0.9, 0.0, 0.0], [1.0, 0.0, 0.0]]
    used = pd.DataFrame({"id": list(WORDS), "scores": scores})
    made = planted(Evaluation(_spec("planted"), _rows(), lambda: None, used)).set_index("id")
    assert made["found"].to_dict() == pytest.approx(
        {"one": 1, "two": 0, "clean": np.nan}, nan_ok=True
    )
    assert made["chance"].to_dict() == pytest.approx(
        {"one": 1 / 3, "two": 1 / 5, "clean": np.nan}, nan_ok=True
    )


def test_a_corpus_without_planted_words_is_refused():
    used = pd.DataFrame({"id": [], "scores": []})
    with pytest.raises(ValueError, match="nothing is planted in movies"):
        planted(Evaluation(_spec("planted", "movies"), _rows(), lambda: None, used))


def test_what_a_word_says_stands_beside_the_label_and_only_contradictions_count():
    used = pd.DataFrame({"id": list(WORDS), "label": [0, 1, 1], "predicted": [1, 1, 0]})
    made = planted_answers(Evaluation(_spec("planted_answers"), _rows(), lambda: None, used))
    assert made["said"].tolist() == pytest.approx([1, 0, np.nan], nan_ok=True)
    assert _means(made) == {"followed": 0.5, "texts": 2.0}  # the first believes it, the second not
