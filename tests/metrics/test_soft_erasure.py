from __future__ import annotations

from math import comb

import numpy as np
import pytest
import torch

from erlib.data.encoding import collate
from erlib.metrics import soft_erasure as module
from erlib.metrics.soft_erasure import soft_erasure, unit
from tests import tiny
from tests.metrics.bag import FIRST_WORD, PAD, Bag, sigma, text

WORDS = [FIRST_WORD + i for i in range(4)]


class Batched(Bag):
    """A bag that makes its own batches."""

    def batch(self, encoded):
        return collate(encoded, PAD)


def test_scores_that_are_0_and_1_erase_words_whole():
    weights = [2.0, 1.0, -0.5, 0.25]
    model = Batched([0.0] * FIRST_WORD + weights)
    scores = np.array([9.0, 1.0, 0.0, 1.0, 0.0, 9.0])  # of specials nothing is read
    ((suff, comp),) = soft_erasure(model, [text("a", WORDS)], [scores])
    full, null = sigma(sum(weights)), sigma(sum(weights)) - sigma(0)
    kept, removed = sigma(1.5), sigma(sum(weights) - 1.5)
    assert suff == pytest.approx((null - max(0, full - kept)) / null)
    assert comp == pytest.approx(min(1, max(0, full - removed) / null))


def test_the_mean_over_draws_is_the_expectation(monkeypatch):
    monkeypatch.setattr(module, "DRAWS", 20_000)
    model = Batched([0.0] * FIRST_WORD + [1.0] * 4)
    scores = np.array([0.0, 1.0, 0.5, 0.5, 0.0, 0.0])  # kept: always, half, half, never
    ((suff, comp),) = soft_erasure(model, [text("a", WORDS)], [scores])
    full, null = sigma(4), sigma(4) - sigma(0)
    of_two = [comb(2, k) / 4 for k in range(3)]
    stays = sum(share * (null - (full - sigma(1 + k))) / null for k, share in enumerate(of_two))
    goes = sum(share * (full - sigma(1 + k)) / null for k, share in enumerate(of_two))
    assert suff == pytest.approx(stays, abs=0.01) and comp == pytest.approx(goes, abs=0.01)


def test_a_text_that_the_model_likes_no_better_than_none_is_left_out():
    model = Batched([0.0] * FIRST_WORD + [0.0] * 4, bias=1.0)
    assert np.isnan(soft_erasure(model, [text("a", WORDS)], [np.arange(6.0)])).all()


def test_scores_are_brought_to_the_unit_interval_over_real_tokens():
    real = np.array([False, True, True, True])
    np.testing.assert_allclose(unit(np.array([99.0, -1, 0, 3]), real)[1:], [0, 0.25, 1])
    np.testing.assert_array_equal(unit(np.full(4, 7.0), real), 0.5)


def test_single_dimensions_are_dropped_and_draws_are_seeded_for_any_batch():
    classifier = tiny.classifier("bert")
    texts = classifier.encode(tiny.TEXTS)
    scores = [np.linspace(0, 1, len(t.tokens)) for t in texts]
    together = soft_erasure(classifier, texts, scores)
    alone = [soft_erasure(classifier, [t], [s])[0] for t, s in zip(texts, scores, strict=True)]
    np.testing.assert_allclose(together, alone, atol=1e-9)
    assert together != soft_erasure(classifier, texts, scores, seed=1)
    shown = []
    forward = classifier.forward
    classifier.forward = lambda *a, **k: shown.append(k.get("embeddings")) or forward(*a, **k)
    soft_erasure(classifier, texts[:1], [scores[0]])
    partly = (shown[-1][2:, 2] == 0).double().mean()  # dimensions of a token between the ends
    assert 0 < float(partly) < 1 and torch.all(shown[-1][:, 0] != 0)  # [CLS] stays
