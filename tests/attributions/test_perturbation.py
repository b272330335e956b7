from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.metrics import pairwise_distances
from torch import nn

from erlib.attributions import attribute
from erlib.attributions.attribute import attribute_encoded
from erlib.attributions.perturbation import drawn_masks, ridge
from erlib.attributions.variants import VARIANTS, Options
from tests import tiny
from tests.attributions import toy

LONG = list(range(3, 15))  # 12 words: 4096 masks, so they are sampled
SHORT = [4, 9, 4, 7, 5]  # 32 masks, one word twice


@pytest.mark.parametrize("words", [LONG, SHORT])
def test_lime_recovers_the_weights_of_a_bag_of_words(words, monkeypatch):
    monkeypatch.setitem(VARIANTS["lime"], "logit", Options(of="logit", samples=500))
    classifier = toy.Toy(toy.SumOverTokens(nn.Linear(toy.DIM, 2)))
    (found,) = attribute_encoded(
        classifier, [toy.text(words, label=1)], "lime", variant="logit", target="gold"
    )
    shares = classifier.model.net.g(classifier.model.table.weight)[:, 1].detach().numpy()
    expected = shares[words] - shares[toy.PAD]  # what a word adds where a pad would stand
    np.testing.assert_allclose(found.scores, expected, rtol=0.1, atol=0.03)
    assert np.corrcoef(found.scores, expected)[0, 1] > 0.999


def test_lime_explains_the_probability_of_the_predicted_class():
    classifier = toy.Toy(toy.SumOverTokens(nn.Linear(toy.DIM, 2)))
    (found,) = attribute_encoded(classifier, [toy.text(SHORT)], "lime")
    masks = np.array([[(m >> i) & 1 for i in range(5)] for m in range(32)], dtype=bool)
    ids = torch.tensor([[toy.CLS, *np.where(m, SHORT, toy.PAD), toy.SEP] for m in masks])
    with torch.no_grad():
        z = classifier.model.net(classifier.model.table(ids))
        p = z.softmax(-1)[:, int(z[-1].argmax())].numpy()
    np.testing.assert_allclose(
        found.scores, ridge(masks, p, drawn_masks(5, 500, None)[1]), atol=1e-6
    )


def test_a_removed_word_is_a_pad_that_keeps_its_place_and_specials_stay():
    classifier = toy.Toy(toy.SumOverTokens(nn.Linear(toy.DIM, 2)))
    attribute_encoded(classifier, [toy.text(SHORT)], "lime", target="predicted")
    shown = torch.cat([seen["input_ids"] for seen in classifier.seen[1:]])
    assert all(bool(seen["attention_mask"].all()) for seen in classifier.seen)
    assert (shown[:, 0] == toy.CLS).all() and (shown[:, -1] == toy.SEP).all()
    words = shown[:, 1:-1]
    assert ((words == torch.tensor(SHORT)) | (words == toy.PAD)).all()
    assert len({tuple(row) for row in words.tolist()}) == len(words) == 32  # each once


def test_no_masked_copy_is_asked_twice():
    classifier = toy.Toy(toy.SumOverTokens(nn.Linear(toy.DIM, 2)))
    attribute_encoded(classifier, [toy.text(LONG)], "lime")
    rows = Counter(tuple(row) for seen in classifier.seen[1:] for row in seen["input_ids"].tolist())
    assert max(rows.values()) == 1 and 300 < len(rows) < 500


def test_masks_are_drawn_as_lime_text_draws_them():
    masks, counts = drawn_masks(10, 20_001, np.random.default_rng(0))
    assert len(np.unique(masks, axis=0)) == len(masks) and counts.sum() == 20_001
    removed = 10 - masks.sum(1)
    sizes = np.array([counts[removed == k].sum() for k in range(11)])
    assert sizes[0] == 1  # the whole text, once
    assert (abs(sizes[1:] - 2000) < 4 * np.sqrt(2000)).all()  # any number of removed words alike
    each = np.array([counts[~masks[:, i]].sum() for i in range(10)])
    assert (abs(each - 20_000 * 0.55) < 4 * np.sqrt(5000)).all()  # and any word alike


def test_enumerated_masks_count_as_often_as_they_would_be_drawn():
    masks, counts = drawn_masks(4, 500, None)
    assert len(masks) == 16 and counts.sum() == pytest.approx(500)
    draws, generator = 200_000, np.random.default_rng(0)
    ranks = generator.random((draws, 4)).argsort(axis=1)
    drawn = ranks >= generator.integers(1, 5, draws)[:, None]  # the k lowest ranks are removed
    tally = Counter(map(tuple, drawn.tolist()))
    tally[(True,) * 4] = draws / 499
    for mask, count in zip(masks.tolist(), counts, strict=True):
        assert count == pytest.approx(tally[tuple(mask)] * 499 / draws, rel=0.05)


def test_copies_count_by_the_kernel_of_lime_text():
    generator = np.random.default_rng(1)
    masks, counts = drawn_masks(9, 400, generator)
    answers = generator.normal(size=len(masks))
    distance = (
        100 * pairwise_distances(masks.astype(float), np.ones((1, 9)), metric="cosine").ravel()
    )
    kernel = np.sqrt(np.exp(-(distance**2) / 25**2))
    repeated = np.repeat(np.arange(len(masks)), counts.astype(int))  # every draw a row of its own
    plain = Ridge(alpha=1).fit(masks[repeated], answers[repeated], sample_weight=kernel[repeated])
    np.testing.assert_allclose(ridge(masks, answers, counts), plain.coef_, atol=1e-9)


def test_pieces_share_their_words_coefficient_and_both_texts_of_a_pair_are_features():
    classifier = tiny.classifier("bert")
    pair = ("unfunny plot", "dull unfunny film")
    (word,) = attribute(classifier, [pair], "lime")
    (token,) = attribute(classifier, [pair], "lime", level="token")
    assert word.tokens == ["unfunny", "plot", "dull", "unfunny", "film"]
    assert (token.scores[token.special] == 0).all()
    keys = list(zip(token.segment, token.word_ids, strict=True))
    for key, score in zip(zip(word.segment, word.word_ids, strict=True), word.scores, strict=True):
        pieces = token.scores[[k == key for k in keys]]
        np.testing.assert_allclose(pieces, score / len(pieces), atol=1e-7)
    assert abs(word.scores[0] - word.scores[3]) > 1e-4  # the same word in two places

    encoded = classifier.encode([pair])
    masks = np.array([[(m >> i) & 1 for i in range(5)] for m in range(32)], dtype=bool)
    kept = [
        dict(zip(zip(word.segment, word.word_ids, strict=True), mask, strict=True))
        for mask in masks
    ]
    pad, ids = classifier.tokenizer.pad_token_id, encoded[0].input_ids
    copies = [
        [i if k.get(key, True) else pad for i, key in zip(ids, keys, strict=True)] for k in kept
    ]
    p = torch.cat([ask(classifier, encoded, copy) for copy in copies])
    answers = p[:, int(p[-1].argmax())].numpy()
    expected = ridge(masks, answers, drawn_masks(5, 500, None)[1])
    np.testing.assert_allclose(word.scores, expected, atol=1e-5)


@torch.no_grad()
def ask(classifier, encoded, ids):
    """[1, class] probabilities of a text with other token ids in its places."""
    inputs = {**classifier.batch(encoded).inputs, "input_ids": torch.tensor([ids])}
    return classifier.forward(inputs).logits.softmax(-1)


def test_sampling_is_seeded_and_more_samples_settle_it(monkeypatch):
    classifier = tiny.classifier("bert")
    text = ["a great film , truly moving and funny but the plot is bad"]
    first, again, other = (attribute(classifier, text, "lime", seed=s)[0] for s in (0, 0, 1))
    np.testing.assert_array_equal(first.scores, again.scores)
    assert abs(first.scores - other.scores).max() > 1e-6
