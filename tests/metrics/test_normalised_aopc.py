from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from erlib.metrics.normalised_aopc import aopc_of, bounds, drops, normalised
from tests import tiny
from tests.metrics.bag import FIRST_WORD, Bag, sigma, text

WEIGHTS = [3.0, 1.0, -1.0, 0.5]
WORDS = [FIRST_WORD + i for i in range(4)]


def _orders(drop):
    """AOPC of every order, written out."""
    n = len(drop).bit_length() - 1
    return {
        order: np.mean([drop[sum(1 << j for j in order[:k])] for k in range(1, n + 1)])
        for order in permutations(range(n))
    }


def _beam(drop, width):
    """The best order found by keeping `width` beginnings of an order at a time."""
    n = len(drop).bit_length() - 1
    beams = [(0.0, 0)]
    for _ in range(n):
        longer = {
            (total + drop[gone | 1 << j], gone | 1 << j)
            for total, gone in beams
            for j in range(n)
            if not gone >> j & 1
        }
        beams = sorted(longer, reverse=True)[:width]
    return beams[0][0] / n


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_the_bounds_are_those_of_all_orders(n):
    drop = np.random.default_rng(n).normal(size=2**n)
    every = _orders(drop).values()
    assert bounds(drop) == pytest.approx((min(every), max(every)), abs=1e-12)


def test_a_beam_reaches_the_upper_bound_when_it_is_wide_and_never_passes_it():
    for seed in range(5):
        drop = np.random.default_rng(seed).normal(size=2**8)
        low, high = bounds(drop)
        found = [_beam(drop, width) for width in (1, 4, 10**6)]
        assert max(found) <= high + 1e-12 and found[-1] == pytest.approx(high)
        assert low < found[0]


def test_in_a_bag_of_words_descending_weights_are_the_best_order_and_ascending_the_worst():
    drop = drops(Bag([0.0] * FIRST_WORD + WEIGHTS), text("a", WORDS))
    total = sum(WEIGHTS)
    assert drop[0b0101] == pytest.approx(sigma(total) - sigma(total - WEIGHTS[0] - WEIGHTS[2]))
    assert normalised(drop, np.array(WEIGHTS)) == pytest.approx((1.0, 0.0))
    assert normalised(drop, -np.array(WEIGHTS)) == pytest.approx((0.0, 1.0))
    kept = [sigma(total - sum(sorted(WEIGHTS)[::-1][:k])) for k in range(1, 5)]
    assert aopc_of(drop, np.array(WEIGHTS)) == pytest.approx(sigma(total) - np.mean(kept))


def test_an_order_between_has_its_share_and_a_tie_goes_to_the_earlier_word():
    drop = np.random.default_rng(0).normal(size=2**4)
    every = _orders(drop)
    low, high = min(every.values()), max(every.values())
    first, last = normalised(drop, np.array([1.0, 3.0, 1.0, 0.0]))
    assert first == pytest.approx((every[1, 0, 2, 3] - low) / (high - low))
    assert last == pytest.approx((every[3, 0, 2, 1] - low) / (high - low))


def test_a_model_that_does_not_look_has_no_range():
    drop = drops(Bag([0.0] * 7, bias=1.0), text("a", WORDS))
    assert np.isnan(normalised(drop, np.arange(4.0))).all()


def test_a_word_is_removed_with_all_its_pieces_and_long_texts_are_refused():
    classifier = tiny.classifier("bert")
    (short, long) = classifier.encode(["a unfunny film", "a film " * 6])
    assert len(short.tokens) > 5 and len(drops(classifier, short)) == 8
    with pytest.raises(ValueError, match="has 12 words; the bounds are for 1 to 10"):
        drops(classifier, long)
