from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

from erlib.metrics import task


def test_f1_macro_by_hand():
    # class 0: 1 of 2 found, 1 of 1 right: 2/3; class 1: 2 of 2 found, 2 of 3 right: 4/5
    assert task.f1_macro([0, 0, 1, 1], [0, 1, 1, 1]) == pytest.approx((2 / 3 + 4 / 5) / 2)
    assert task.f1_binary([0, 0, 1, 1], [0, 1, 1, 1]) == pytest.approx(4 / 5)
    assert task.accuracy([0, 0, 1, 1], [0, 1, 1, 1]) == 0.75


def test_majority_share_is_that_of_the_commonest_class():
    assert task.majority_share([2, 0, 2, 1]) == 0.5


def test_a_class_never_predicted_scores_zero_without_a_warning(recwarn):
    assert task.f1_macro([0, 0, 1, 2], [0, 0, 1, 1]) == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert not recwarn.list


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_scores_by_counting_are_sklearn_s(classes):
    gold, predicted = np.random.default_rng(classes).integers(0, classes, (2, 40))
    assert task.counted_f1_macro(gold, predicted) == pytest.approx(task.f1_macro(gold, predicted))
    assert task.counted_accuracy(gold, predicted) == task.accuracy(gold, predicted)
    if classes == 2:
        assert task.counted_f1_binary(gold, predicted) == pytest.approx(f1_score(gold, predicted))


def test_counted_f1_where_classes_are_missing():
    gold, predicted = [0, 0, 2], [2, 0, 2]
    assert task.counted_f1_macro(gold, predicted) == pytest.approx(task.f1_macro(gold, predicted))
    assert task.counted_f1_binary([0, 0], [0, 0]) == 0.0


def test_span_scores_normalise_as_squad_does():
    assert task.span_exact_match("The  Cat!", ["dog", "a cat"]) == 1.0
    assert task.span_exact_match("cats", ["cat"]) == 0.0
    # "black cat" and "big black dog" share one of 2 and 3 words
    assert task.span_f1("the black cat", ["big black dog"]) == pytest.approx(2 / 5)
    assert task.span_f1("x", ["y", "x z"]) == pytest.approx(2 / 3)
    assert task.span_f1("", [""]) == 1.0 and task.span_f1("a", ["cat"]) == 0.0


def test_a_span_without_answers_is_refused():
    with pytest.raises(ValueError, match="at least one answer"):
        task.span_f1("x", [])
