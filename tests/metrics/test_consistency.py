from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from erlib.metrics.consistency import (
    consistency,
    distribution,
    explanation_distances,
    hidden_distances,
)


def texts(rng, n, dim=3):
    lengths = rng.integers(2, 7, size=n)
    hidden = [rng.normal(size=(t, dim)) for t in lengths]
    return hidden, [rng.normal(size=t) for t in lengths]


def by_hand(hidden, explanations):
    """metrics.md §7 with loops: pad with 0, D_H mean of token-wise norms, D_r one norm."""
    width = max(map(len, hidden))
    h = [np.vstack([x, np.zeros((width - len(x), x.shape[1]))]) for x in hidden]
    r = [np.append(x, np.zeros(width - len(x))) for x in explanations]
    d_h, d_r = [], []
    for i in range(len(h)):
        for j in range(i + 1, len(h)):
            d_h.append(sum(np.sqrt(((h[i][t] - h[j][t]) ** 2).sum()) for t in range(width)) / width)
            d_r.append(np.sqrt(((r[i] - r[j]) ** 2).sum()))
    return spearmanr(d_h, d_r).statistic


def test_every_batch_is_a_spearman_correlation_over_all_its_pairs():
    hidden, explanations = texts(np.random.default_rng(0), 20)
    result = consistency(hidden, explanations, batch_size=8)
    expected = [by_hand(hidden[i : i + 8], explanations[i : i + 8]) for i in (0, 8, 16)]
    assert result.batches == pytest.approx(expected, abs=1e-12)
    assert result.value == pytest.approx(np.mean(expected), abs=1e-12)


def test_batches_of_64_are_the_default():
    hidden, explanations = texts(np.random.default_rng(1), 66)
    result = consistency(hidden, explanations)
    assert result.batches[0] == pytest.approx(by_hand(hidden[:64], explanations[:64]), abs=1e-12)
    assert result.skipped == 1  # two texts are one pair: no correlation


def test_distances_by_hand():
    hidden = [np.array([[3.0, 4.0]]), np.array([[0.0, 0.0], [0.0, 2.0], [1.0, 0.0]])]
    assert hidden_distances(hidden).tolist() == [(5 + 2 + 1) / 3]  # the padding is compared too
    assert explanation_distances([np.array([3.0]), np.array([0.0, 4.0])]).tolist() == [5.0]


def test_explanations_that_follow_the_states_are_perfectly_consistent():
    points = [0.0, 1.0, 3.0, 7.0]
    hidden = [np.array([[x]]) for x in points]
    assert consistency(hidden, [np.array([2 * x]) for x in points]).value == pytest.approx(1.0)
    # 0 and 1, the nearest, are now farthest from each other in explanation: ranks 1 3 2 and 3 2 1.
    turned = [np.array([0.0]), np.array([9.0]), np.array([6.0])]
    assert consistency(hidden[:3], turned).value == pytest.approx(-0.5)


def test_a_batch_of_equal_explanations_is_skipped_and_counted():
    hidden, explanations = texts(np.random.default_rng(2), 8)
    equal = [np.ones(2)] * 4
    result = consistency([*hidden[:4], *hidden[4:]], [*equal, *explanations[4:]], batch_size=4)
    assert result.skipped == 1
    assert result.value == pytest.approx(by_hand(hidden[4:], explanations[4:]), abs=1e-12)
    nothing = consistency(hidden[:4], equal)
    assert np.isnan(nothing.value) and nothing.batches == []


def test_every_text_needs_both():
    with pytest.raises(ValueError, match="1 hidden states for 2 explanations"):
        consistency([np.zeros((1, 1))], [np.zeros(1)] * 2)


def test_scores_of_any_sign_become_a_distribution():
    np.testing.assert_allclose(distribution(np.array([-1.0, 3.0, 0.0])), [0.25, 0.75, 0.0])
    np.testing.assert_allclose(distribution(np.array([-np.inf, 1.0, 1.0])), [0.0, 0.5, 0.5])
    np.testing.assert_allclose(distribution(np.zeros(4)), [0.25] * 4)
