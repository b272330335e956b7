"""A model that has learnt nothing is called trained once in a hundred times, and no habit helps."""

from __future__ import annotations

from itertools import permutations
from math import comb

import numpy as np
import pytest
from sklearn.metrics import f1_score

from erlib.metrics import learnt
from erlib.metrics.learnt import LEVEL, above_share_p, classes_p, permuted_f1_p, spans_p


def trained_share(rng, gold, answer, times):
    """How often a model that answers like this is called trained."""
    return np.mean([classes_p(gold, answer(rng)) < LEVEL for _ in range(times)])


def guessed(rng, gold, right):
    """Right with this probability, else any other class."""
    classes = gold.max() + 1
    other = (gold + rng.integers(1, classes, gold.size)) % classes
    return np.where(rng.random(gold.size) < right, gold, other)


def test_the_p_value_of_f1_is_that_of_all_permutations(monkeypatch):
    monkeypatch.setattr(learnt, "PERMUTATIONS", 99_999)
    gold, predicted = np.array([0, 0, 0, 1, 1, 2, 2]), np.array([0, 0, 1, 1, 1, 2, 0])
    orders = set(permutations(predicted.tolist()))  # 140, equally likely
    f1 = [f1_score(gold, order, average="macro", zero_division=0) for order in orders]
    reached = f1_score(gold, predicted, average="macro")
    exact = np.mean(np.array(f1) >= reached - 1e-12)
    assert exact == pytest.approx(8 / 140)
    assert permuted_f1_p(gold, predicted) == pytest.approx(exact, abs=2e-3)  # 3 standard errors


def test_the_p_value_of_accuracy_is_the_binomial_tail():
    tail = sum(comb(10, k) for k in (8, 9, 10)) / 2**10  # at least 8 of 10 coins
    assert above_share_p(8, 10, 0.5) == pytest.approx(tail)
    assert above_share_p(0, 10, 0.5) == 1.0


def test_a_model_that_knows_nothing_is_called_trained_at_most_once_in_a_hundred():
    rng = np.random.default_rng(0)
    uneven = np.repeat([0, 1], [140, 60])  # only F1 is asked for: the test has its level
    share = trained_share(rng, uneven, lambda r: r.permutation(uneven), 3000)
    assert 0.004 < share < 0.015
    even = np.repeat([0, 1, 2], [40, 35, 25])
    assert trained_share(rng, even, lambda r: r.integers(0, 3, 100), 1000) < 0.015


def test_a_model_that_has_learnt_is_found_by_a_hundred_texts():
    rng = np.random.default_rng(0)
    halves, topics = np.arange(100) % 2, np.arange(100) % 8
    assert trained_share(rng, halves, lambda r: guessed(r, halves, 0.75), 300) > 0.98
    assert trained_share(rng, topics, lambda r: guessed(r, topics, 0.4), 300) > 0.98
    rare = np.repeat([0, 1], [85, 15])  # accuracy is below that of always saying 0
    found = guessed(rng, rare, 0.8)
    assert (found == rare).mean() < 0.85 and classes_p(rare, found) < LEVEL


def test_one_answer_for_all_texts_is_no_learning_however_high_its_f1():
    gold = np.repeat([1, 0], [54, 46])
    always = np.ones(100, dtype=int)
    assert f1_score(gold, always) > 0.7 and classes_p(gold, always) == 1.0
    three = np.repeat([0, 1, 2], [56, 30, 14])
    nearly = np.r_[np.zeros(95, dtype=int), np.ones(5, dtype=int)]
    assert f1_score(three, nearly, average="macro") == pytest.approx(0.24, abs=0.01)
    assert classes_p(three, nearly) > LEVEL


def test_one_text_above_the_majority_is_no_learning_though_f1_is_above_chance():
    gold = np.repeat([0, 1], [58, 42])
    predicted = np.r_[np.repeat([0, 1], [40, 18]), np.repeat([0, 1], [23, 19])]
    assert (gold == predicted).mean() == 0.59 and classes_p(gold, predicted) > 0.4
    found = np.r_[np.repeat([0, 1], [36, 22]), np.repeat([0, 1], [19, 23])]
    more = np.r_[np.repeat([0, 1], [44, 14]), np.repeat([0, 1], [13, 29])]
    assert (gold == more).mean() == 0.73 and classes_p(gold, more) < LEVEL
    tripled = np.tile(gold, 3), np.tile(found, 3)  # F1 is above chance, accuracy is not
    assert permuted_f1_p(*tripled) < LEVEL < classes_p(*tripled)


def test_spans_are_held_against_the_best_constant_answer():
    gold = np.array([[1, 3]] * 40 + [[k, k + 2] for k in range(5, 55)] + [[-1, -1]] * 10)
    constant = np.tile([1, 3], (100, 1))
    assert spans_p(gold, constant) == above_share_p(40, 100, 0.4) > 0.5
    found = gold.copy()
    found[:20] = 0
    assert spans_p(gold, found) == above_share_p(70, 100, 0.4) < LEVEL
    cut = np.tile([-1, -1], (4, 1))
    assert spans_p(cut, cut) == 1.0
