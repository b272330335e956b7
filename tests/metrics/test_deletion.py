from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from erlib.metrics.deletion import over_random
from tests.metrics.bag import FIRST_WORD, Bag, sigma, text

WEIGHTS = [3.0, 1.0, -1.0, 0.5, 0.25]  # of five words, whose ids begin at FIRST_WORD
WORDS = [FIRST_WORD + i for i in range(5)]


def bag(weights=WEIGHTS, **options):
    return Bag([0.0] * FIRST_WORD + list(weights), **options)


def test_the_best_words_are_compared_with_as_many_at_random():
    scores = {"right": [np.array(WEIGHTS)], "wrong": [-np.array(WEIGHTS)]}
    found = over_random(bag(), [text("a", WORDS)], scores, draws=4000)
    total = sum(WEIGHTS)
    chance = np.mean([sigma(total - weight) for weight in WEIGHTS])
    error = 4 * np.std([sigma(total - weight) for weight in WEIGHTS]) / np.sqrt(4000)
    assert found.loc["a", "right"] == pytest.approx(chance - sigma(total - 3), abs=error)
    assert found.loc["a", "wrong"] == pytest.approx(chance - sigma(total + 1), abs=error)


def test_several_shares_are_averaged_and_rounded_up():
    scores = {"first": [np.arange(5, 0, -1.0)], "last": [np.arange(5.0)]}
    found = over_random(bag(), [text("a", WORDS)], scores, percents=(20, 50))
    first = [sigma(sum(WEIGHTS[k:])) for k in (1, 3)]
    last = [sigma(sum(WEIGHTS[: 5 - k])) for k in (1, 3)]
    between = found.loc["a", "first"] - found.loc["a", "last"]  # chance is the same for both
    assert between == pytest.approx(np.mean(last) - np.mean(first), abs=1e-12)


def test_words_that_all_weigh_the_same_are_worth_what_chance_is():
    alike = over_random(bag([0.7] * 5), [text("a", WORDS)], {"any": [np.arange(5.0)]})
    assert alike.loc["a", "any"] == pytest.approx(0.0, abs=1e-12)


def test_the_probability_is_that_of_the_class_predicted_on_the_full_text():
    scores = {"up": [np.array(WEIGHTS)], "down": [-np.array(WEIGHTS)]}
    found = over_random(bag(bias=-9.0), [text("a", WORDS)], scores)  # class 0: words speak against
    assert found.loc["a", "up"] < 0 < found.loc["a", "down"]


def test_all_pieces_of_a_word_go_together_and_the_two_texts_of_a_pair_are_told_apart():
    split = {"word_ids": [-1, 0, 0, 1, 0, 1, -1], "segment": [-1, 0, 0, 0, 1, 1, -1]}
    pair = replace(text("a", WORDS), **split)
    model = bag()
    over_random(model, [pair], {"third": [np.array([0.0, 0.0, 1.0, 0.0])]}, draws=50)
    deleted = {tuple(sorted(set(WORDS) - set(ids))) for ids, _, _ in model.shown}
    first, second, third, fourth = (3, 4), (5,), (6,), (7,)
    assert deleted == {(), first, second, third, fourth}
