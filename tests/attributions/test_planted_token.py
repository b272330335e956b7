"""Every attribution beats a random one on a model whose reason is known, since it was planted."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from torch.nn.functional import cross_entropy

from erlib.attributions import METHODS, attribute_encoded
from erlib.data.planted import OF_CLASS
from erlib.metrics.planted import found_at_k
from tests import tiny

WORDS = ["a", "great", "film", "the", "plot", "is", "dull", "acting", "best", "worst", "year",
         "music", "story"]  # fmt: skip
LENGTH, TEXTS = 8, 60
# What has nothing to find: chance itself, and what is learnt beside the head.
LEFT_OUT = {"random", "ivra", "smat"}
SPENT = {"integrated_gradients": {"steps": 8}, "lime": {"samples": 40}, "shap": {"samples": 60}}


def _texts(count, seed):
    """Words at random with one of a class among them, and that class."""
    rng = np.random.default_rng(seed)
    texts, labels = [], rng.integers(0, 2, count).tolist()
    for label in labels:
        words = rng.choice(WORDS, LENGTH - 1).tolist()
        words.insert(int(rng.integers(0, LENGTH)), OF_CLASS[label])
        texts.append(words)
    return texts, labels


@cache
def _trained():
    """A tiny model that answers what the planted word says."""
    torch.manual_seed(0)
    model = tiny.classifier("bert", head="er", seed=0)
    optimiser = torch.optim.AdamW(model.model.parameters(), lr=3e-3)
    for step in range(150):
        texts, labels = _texts(32, seed=step)
        batch = model.batch(model.encode(texts, labels=labels))
        loss = cross_entropy(model.forward(batch.inputs).logits, batch.labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval()


def test_the_model_answers_what_the_planted_word_says():
    texts, labels = _texts(200, seed=999)
    predicted = _trained().predict(texts)
    right = predicted["label"].astype(str) == [str(_trained().classes[y]) for y in labels]
    assert right.mean() >= 0.95


@pytest.mark.parametrize("name", [n for n in METHODS if n not in LEFT_OUT])
def test_it_finds_the_planted_word_more_often_than_chance(name):
    texts, _ = _texts(TEXTS, seed=1000)
    encoded = _trained().encode(texts)
    found = attribute_encoded(_trained(), encoded, name, level="word", options=SPENT.get(name))
    hits = [
        found_at_k(words, np.abs(one.scores), 1) for words, one in zip(texts, found, strict=True)
    ]
    p = binomtest(int(np.sum(hits)), TEXTS, 1 / LENGTH, "greater").pvalue
    assert p < 0.001, f"{np.mean(hits):.2f} of {TEXTS}, by chance {1 / LENGTH:.2f}"
