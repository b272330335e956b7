from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from erlib.metrics.plausibility import (
    auc,
    average_precision,
    mean_defined,
    plausibility,
    recall_at_k,
)


def random_texts(n: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        size = int(rng.integers(2, 30))
        labels = rng.integers(0, 2, size)
        labels[:2] = [0, 1]
        yield rng.integers(-3, 4, size).astype(float), labels  # few values: many ties


def test_auc_and_average_precision_are_those_of_sklearn_with_ties():
    for scores, labels in random_texts(100):
        assert auc(scores, labels) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)
        assert average_precision(scores, labels) == pytest.approx(
            average_precision_score(labels, scores), abs=1e-12
        )


def test_recall_at_k_by_hand():
    assert recall_at_k([0.9, 0.1, 0.8, 0.7], [1, 1, 0, 0]) == 0.5
    assert recall_at_k([0.9, 0.8, 0.1], [1, 1, 0]) == 1.0


def test_recall_at_k_takes_the_earlier_of_tied_tokens():
    assert recall_at_k([0.5, 0.5, 0.5], [1, 0, 0]) == 1.0
    assert recall_at_k([0.5, 0.5, 0.5], [0, 0, 1]) == 0.0


def test_constant_scores_are_chance():
    assert auc([1, 1, 1, 1], [1, 0, 1, 0]) == 0.5
    assert average_precision([1, 1, 1, 1], [1, 0, 0, 0]) == 0.25


@pytest.mark.parametrize("metric", ["auc", "average_precision", "recall_at_k"])
def test_texts_of_one_class_are_undefined_and_counted(metric):
    values = plausibility([[0.1, 0.2], [0.3, 0.4], [0.2, 0.1]], [[0, 0], [1, 1], [1, 0]], metric)
    assert np.isnan(values).tolist() == [True, True, False]
    assert mean_defined(values) == (1.0, 2)


def test_no_defined_text_has_no_mean():
    mean, left_out = mean_defined([np.nan])
    assert np.isnan(mean) and left_out == 1


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="did you mean 'auc'"):
        plausibility([[1, 2]], [[0, 1]], "acu")
    with pytest.raises(ValueError, match="one length"):
        auc([1, 2, 3], [0, 1])
    with pytest.raises(ValueError, match="0 or 1"):
        auc([1, 2, 3], [0, 1, 2])
    with pytest.raises(ValueError, match="not finite"):
        auc([1, float("nan")], [0, 1])


def test_recall_looks_at_as_many_tokens_as_the_rationale_has():
    assert recall_at_k([0.9, 0.8, 0.7, 0.1], [1, 0, 1, 0]) == 0.5
