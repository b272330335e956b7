from __future__ import annotations

import numpy as np
import pytest

from erlib.metrics.fresh import contiguous, rationale, top_k

WORDS = ["the", "film", "is", "truly", "great", "and", "the", "rest", "is", "dull"]
SCORES = np.array([0.1, 0.2, 0.0, 0.5, 0.9, 0.0, 0.1, 0.0, 0.0, 0.8])


def test_the_best_words_come_in_the_order_of_the_document():
    assert rationale(WORDS, SCORES, percent=30) == ["truly", "great", "dull"]


def test_the_score_order_is_there_as_a_check():
    assert rationale(WORDS, SCORES, percent=30, order="score") == ["great", "dull", "truly"]


@pytest.mark.parametrize(
    ("percent", "words", "k"), [(20, 11, 3), (20, 10, 2), (2, 10, 1), (7, 100, 7)]
)
def test_k_is_rounded_up_and_at_least_one(percent, words, k):
    assert len(rationale(["w"] * words, np.zeros(words), percent=percent)) == k


def test_of_equal_scores_the_earlier_words_are_taken():
    assert top_k(np.array([1.0, 2.0, 1.0, 1.0]), 3) == [0, 1, 2]


def test_contiguous_takes_the_window_with_the_largest_sum_and_not_the_best_word():
    scores = np.array([0.0, 0.9, 0.0, 0.5, 0.6, 0.0])
    assert contiguous(scores, 2) == [3, 4]
    assert contiguous(scores, 1) == [1]
    assert contiguous(scores, 6) == list(range(6))


def test_the_first_of_equal_windows_is_taken():
    assert contiguous(np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0]), 2) == [1, 2]


def test_contiguous_equals_trying_every_window():
    rng = np.random.default_rng(0)
    for n in (1, 5, 17):
        for k in range(1, n + 1):
            scores = rng.normal(size=n)
            sums = [sum(scores[i : i + k]) for i in range(n - k + 1)]
            start = sums.index(max(sums))
            assert contiguous(scores, k) == list(range(start, start + k))


def test_a_contiguous_rationale_is_one_piece_of_the_text():
    assert rationale(WORDS, SCORES, percent=20, extractor="contiguous") == ["truly", "great"]


def test_unknown_ways_and_missing_scores_are_refused():
    with pytest.raises(ValueError, match="unknown extractor 'topk'; did you mean 'top_k'"):
        rationale(WORDS, SCORES, percent=20, extractor="topk")
    with pytest.raises(ValueError, match="unknown order 'best'"):
        rationale(WORDS, SCORES, percent=20, order="best")
    with pytest.raises(ValueError, match="2 scores for 10 words"):
        rationale(WORDS, SCORES[:2], percent=20)
