from __future__ import annotations

import numpy as np
import pytest

from erlib.metrics.robustness import attack, jaccard


def test_jaccard_of_the_best_quarter_by_hand():
    # n = 9: m = ceil(2.25) = 3. {0, 1, 2} and {1, 2, 8} share two of four.
    a = np.array([9.0, 8, 7, 0, 0, 0, 0, 0, 0])
    b = np.array([0.0, 8, 7, 0, 0, 0, 0, 0, 9])
    assert jaccard([a], [b]).tolist() == [0.5]


def test_a_text_of_one_to_four_tokens_has_one_best():
    assert jaccard([np.array([1.0, 0, 0, 0])], [np.array([2.0, 0, 0, 1.5])]).tolist() == [1.0]
    assert jaccard([np.array([1.0])], [np.array([-1.0])]).tolist() == [1.0]


def test_scores_are_signed_and_ties_go_to_the_earlier_token():
    assert jaccard([np.array([-9.0, 1, 0])], [np.array([0.0, 1, 0])]).tolist() == [1.0]
    assert jaccard([np.zeros(4)], [np.array([1.0, 0, 0, 0])]).tolist() == [1.0]


def test_chance_is_about_a_seventh_for_long_texts():
    rng = np.random.default_rng(0)
    a, b = ([rng.normal(size=400) for _ in range(200)] for _ in range(2))
    assert jaccard(a, b).mean() == pytest.approx(1 / 7, abs=0.01)


def test_both_models_must_have_scored_the_same_tokens():
    with pytest.raises(ValueError, match="scores of 1 and of 2 texts"):
        jaccard([np.zeros(3)], [np.zeros(3)] * 2)
    with pytest.raises(ValueError, match="for the same text"):
        jaccard([np.zeros(3)], [np.zeros(4)])


@pytest.mark.parametrize(
    ("correct", "flipped", "accuracy", "under", "success"),
    [(384, 45, 0.960, 0.848, 0.1171), (372, 12, 0.930, 0.900, 0.0323)],  # REGEX's Table 6
)
def test_the_papers_counts_give_the_papers_rates(correct, flipped, accuracy, under, success):
    gold = np.ones(400)
    before = np.where(np.arange(400) < correct, 1, 0)
    after = before.copy()
    after[:flipped] = 0
    result = attack(gold, before, after)
    assert result.successes == flipped
    assert result.original_accuracy == pytest.approx(accuracy, abs=5e-4)
    assert result.accuracy_under_attack == pytest.approx(under, abs=5e-4)
    assert result.success_rate == pytest.approx(success, abs=1e-4)


def test_a_text_that_was_wrong_before_does_not_count_as_flipped():
    result = attack(np.array([1, 1, 1]), np.array([0, 1, 1]), np.array([1, 0, 1]))
    assert (result.correct, result.successes) == (2, 1)
    assert np.isnan(attack(np.array([1]), np.array([0]), np.array([1])).success_rate)
