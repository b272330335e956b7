"""What a batch needs, by hand: a tiny BERT of two layers, 16 wide, with four heads of four."""

from __future__ import annotations

import pytest

from erlib.attributions.costs import peak_bytes
from erlib.attributions.decomposition import CACHE_BYTES
from erlib.attributions.memory import bytes_per_text, texts_that_fit
from tests import tiny

# Ten tokens: a vector has 160 numbers, the attention maps of a layer 400.
KEPT = 4 * (2 * (1 * 160 + 400) + 8 * 160 + 4 * 400)  # bytes, forwards only
GRAPH = 4 * (2 * (10 * 160 + 400) + 8 * 160 + 4 * 400)  # and backwards
HEADS_SENT = 3 * 4 * 10 * 4 * 16


@pytest.fixture(scope="module")
def classifier():
    return tiny.classifier("bert")


def test_a_text_costs_its_vectors_and_attention_maps(classifier):
    assert (KEPT, GRAPH) == (16_000, 27_520)
    assert bytes_per_text(classifier, 10, graph=False) == KEPT
    assert bytes_per_text(classifier, 10, graph=True) == GRAPH


@pytest.mark.parametrize(
    ("budget", "texts"), [(0, 1), (KEPT - 1, 1), (2 * KEPT - 1, 1), (2 * KEPT, 2), (7 * KEPT, 7)]
)
def test_as_many_texts_as_the_budget_holds_and_at_least_one(classifier, budget, texts):
    assert texts_that_fit(classifier, 10, budget, graph=False) == texts


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("attention", 2 * KEPT),
        ("input_x_gradient", 2 * GRAPH),
        ("integrated_gradients", GRAPH),  # more copies of a text are made as the budget allows
        ("lime", KEPT),
        ("alti", 2 * KEPT + HEADS_SENT + 4 * 4 * 100 + CACHE_BYTES),
        ("decompx", 2 * KEPT + HEADS_SENT + 4 * 100 * 16 + CACHE_BYTES),
    ],
)
def test_a_batch_of_two_needs_what_its_method_keeps(classifier, method, expected):
    assert peak_bytes(method, classifier, 10, batch=2) == expected
