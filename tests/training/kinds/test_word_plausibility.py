from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from datasets import Dataset
from sklearn.metrics import f1_score, roc_auc_score

from erlib.config import DataSpec, EvalSpec
from erlib.training.evaluations import Evaluation
from erlib.training.kinds.word_plausibility import word_plausibility

MARKED = {"a": [1, 0, 0, 0], "b": [0, 1, 1, 0, 0, 0], "c": [0, 0, 0]}


@pytest.fixture
def measured():
    """Word scores of three texts, one of them cut to five of its words and one not annotated."""
    scores = {"a": [-0.9, 0.1, 0.2, 0.3], "b": [0.1, 0.9, -0.2, 0.3, 0.0], "c": [0.1, 0.2, 0.3]}
    rows = Dataset.from_dict({"id": list(MARKED), "rationale": list(MARKED.values())})
    used = pd.DataFrame({"id": list(scores), "scores": list(scores.values())})
    spec = EvalSpec(None, DataSpec("movies", "local"), "test", "word_plausibility")
    return word_plausibility(Evaluation(spec, rows, lambda: None, used)).set_index("id"), scores


def test_sizes_of_scores_rank_the_words_that_the_model_read(measured):
    table, scores = measured
    for name in ("a", "b"):
        marked = MARKED[name][: len(scores[name])]
        assert table["auc"][name] == roc_auc_score(marked, np.abs(scores[name]))
    assert np.isnan(table.loc["c"]).all()


def test_a_hard_rationale_has_the_share_of_words_that_rationales_have(measured):
    table, _ = measured  # (1/4 + 2/5)/2 = .325 of four words: 1; of five: 2
    assert table["token_f1"].to_dict() == pytest.approx(
        {
            "a": f1_score([1, 0, 0, 0], [1, 0, 0, 0]),
            "b": f1_score([0, 1, 1, 0, 0], [0, 1, 0, 1, 0]),
            "c": np.nan,
        },
        nan_ok=True,
    )
    assert table["iou_f1"]["a"] == 1.0
    assert table["iou_f1"]["b"] == pytest.approx(2 / 3)  # {1} meets {1, 2} by half, {3} nothing
