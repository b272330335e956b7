from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from torch import nn

from erlib.attributions import attribute
from erlib.attributions.attribute import attribute_encoded
from erlib.attributions.shapley import coalitions, constrained
from tests import tiny
from tests.attributions import toy

LONG = list(range(3, 16))  # 13 words: sampled


def _by_definition(n, value):
    """The mean of what a word adds over all orders in which the words may join."""
    shares, orders = np.zeros(n), list(permutations(range(n)))
    for order in orders:
        kept = np.zeros(n, dtype=bool)
        for word in order:
            before = value(kept)
            kept[word] = True
            shares[word] += value(kept) - before
    return shares / len(orders)


@pytest.mark.parametrize("words", [[5], [4, 9], [4, 9, 4, 7, 5]])
def test_short_texts_have_the_shapley_values_of_the_definition(words):
    classifier = toy.Toy(toy.AttendingPool(), seed=3)
    (found,) = attribute_encoded(classifier, [toy.text(words, label=1)], "shap", target="gold")

    def value(kept):
        ids = torch.tensor([[toy.CLS, *np.where(kept, words, toy.PAD), toy.SEP]])
        with torch.no_grad():
            return float(classifier.model.net(classifier.model.table(ids))[0, 1])

    np.testing.assert_allclose(found.scores, _by_definition(len(words), value), atol=1e-6)
    assert abs(found.completeness_gap) < 1e-9


def test_of_a_bag_of_words_a_sample_finds_the_exact_values():
    classifier = toy.Toy(toy.SumOverTokens(nn.Linear(toy.DIM, 2)))
    (found,) = attribute_encoded(classifier, [toy.text(LONG, label=1)], "shap", target="gold")
    shares = classifier.model.net.g(classifier.model.table.weight)[:, 1].detach().numpy()
    np.testing.assert_allclose(found.scores, shares[LONG] - shares[toy.PAD], atol=1e-5)


def test_sampled_sets_come_with_their_complements_and_by_the_kernels_sizes():
    n = 12
    masks, counts = coalitions(n, 20_000, np.random.default_rng(0))
    tally = {mask.tobytes(): c for mask, c in zip(masks, counts, strict=True)}
    assert counts.sum() == 20_000 and all(
        tally[(~m).tobytes()] == tally[m.tobytes()] for m in masks
    )
    sizes = np.array([counts[masks.sum(1) == k].sum() for k in range(1, n)])
    chances = np.array([1 / (k * (n - k)) for k in range(1, n)])
    assert (abs(sizes - 20_000 * chances / chances.sum()) < 5 * np.sqrt(20_000 * 0.2)).all()


def test_a_sample_comes_near_the_values_of_a_game_with_pairs():
    rng = np.random.default_rng(1)
    pairs = np.triu(rng.normal(size=(11, 11)))  # value: Σ_ij a_ij; a pair is shared equally
    exact = pairs.diagonal() + (pairs.sum(0) + pairs.sum(1) - 2 * pairs.diagonal()) / 2
    masks, weights = coalitions(11, 20_000, rng)
    answers = np.einsum("mi,ij,mj->m", masks.astype(float), pairs, masks.astype(float))
    found = constrained(masks, answers, weights, pairs.sum())
    assert found.sum() == pytest.approx(pairs.sum()) and abs(found - exact).max() < 0.1


def test_sampling_is_seeded_and_repeats_itself_in_any_batch():
    classifier = tiny.classifier("bert")
    text = "a great film , truly moving and funny but the plot is bad"
    first, again = (attribute(classifier, ["dull", text], "shap", seed=0)[1] for _ in range(2))
    (alone,) = attribute(classifier, [text], "shap", seed=0, options={"samples": 500})
    (other,) = attribute(classifier, [text], "shap", seed=1)
    np.testing.assert_array_equal(first.scores, again.scores)
    np.testing.assert_allclose(first.scores, alone.scores, atol=1e-5)
    assert abs(first.scores - other.scores).max() > 1e-6
