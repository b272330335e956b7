from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from erlib.metrics.planted import found_at_k, pairs_right


def test_the_share_of_planted_words_among_the_k_best():
    words = ["a", "crimson", "film", "violet", "!"]
    assert found_at_k(words, np.array([0.0, 3.0, 1.0, 2.0, 0.5]), 2) == 1.0
    assert found_at_k(words, np.array([0.0, 3.0, 2.5, 2.0, 0.5]), 2) == 0.5
    assert found_at_k(words, np.array([9.0, -3.0, 2.5, -2.0, 0.5]), 2) == 0.0  # as signed
    assert found_at_k(["maroon", "film"], np.array([1.0, 1.0]), 1) == 1.0  # the earlier of a tie


def test_texts_without_the_rules_words_are_not_asked():
    assert np.isnan(found_at_k(["a", "film"], np.zeros(2), 1))
    assert np.isnan(found_at_k(["a", "crimson"], np.zeros(2), 2))  # a decoy


def test_a_pair_counts_if_both_of_its_texts_are_right():
    texts = pd.DataFrame(
        {"id": ["clean", "both", "one", "other"], "label": [0, 1, 1, 0], "predicted": [1, 1, 1, 1]}
    )
    twins = pd.DataFrame(
        {"id": ["other", "both", "one"], "label": [1, 0, 0], "predicted": [1, 0, 1]}
    )
    found = pairs_right(texts, twins)
    assert found.to_dict() == {"other": 0.0, "both": 1.0, "one": 0.0}
    assert found.mean() == pytest.approx(1 / 3)
