"""The salience loss is eq. 3 by hand, in the paper's reading and in the code's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax
from scipy.stats import entropy

from erlib.config import term
from erlib.data.salience import Tokens, salience, textrank
from erlib.losses import Step, Weighted
from erlib.losses.objective import build
from erlib.losses.salience import kl_divergence
from tests import tiny

TEXTS = ["a great film , truly great", "dull", "the plot is bad and the acting is unfunny ."]


@pytest.fixture
def classifier():
    return tiny.classifier("bert", head="pooled").eval()


def step_of(classifier, texts=TEXTS):
    encoded = classifier.encode(texts, labels=[1, 0, 0][: len(texts)])
    return Step(classifier, classifier.batch(encoded)), encoded


def attention_of(step, row, length):
    return step.forward().attentions[-1][row].mean(0)[0, :length].detach().numpy()


def expected_kl(step, encoded, *, second):
    """One text at a time, with SciPy's entropy; salience of specials is 0."""
    values = []
    for row, text in enumerate(encoded):
        special = np.array(text.special)
        sigma = np.zeros(len(special))
        sigma[~special] = textrank(np.array(text.tokens)[~special].tolist())
        alpha = attention_of(step, row, len(special)).astype(float)
        alpha = softmax(alpha) if second else alpha / alpha.sum()
        values.append(entropy(alpha, softmax(sigma)))
    return values


@pytest.mark.parametrize(
    ("kl", "second", "combine"),
    [
        ("paper", False, np.mean),
        ("second_softmax", True, np.mean),
        ("squared_sum", False, lambda v: np.sum(v) ** 2),
        ("reference", True, lambda v: np.sum(v) ** 2),
    ],
)
def test_every_reading_is_what_scipy_gives_text_by_text(classifier, kl, second, combine):
    step, encoded = step_of(classifier)
    loss = build(term("salience", kl=kl))
    loss.fit(encoded)
    expected = combine(expected_kl(step, encoded, second=second))
    assert loss.loss(step)["salience"].item() == pytest.approx(expected, rel=1e-5)


def test_two_tokens_by_hand():
    attention, mask = torch.tensor([[0.3, 0.1, 9.0]]), torch.tensor([[True, True, False]])
    sigma = torch.tensor([[math.log(3.0), 0.0, 5.0]])  # softmax: 3/4, 1/4
    # α = (3/4, 1/4) after division by .4: no divergence at all
    assert kl_divergence(attention, sigma, mask).item() == pytest.approx(0.0, abs=1e-7)
    a = 1 / (1 + math.exp(-0.2))
    expected = a * math.log(a / 0.75) + (1 - a) * math.log((1 - a) / 0.25)
    assert kl_divergence(attention, sigma, mask, second_softmax=True).item() == pytest.approx(
        expected, rel=1e-5
    )


def test_the_gradient_is_that_of_finite_differences():
    torch.manual_seed(0)
    attention = torch.rand(3, 5, dtype=torch.double).softmax(-1).requires_grad_()
    sigma, mask = torch.randn(3, 5, dtype=torch.double), torch.ones(3, 5, dtype=torch.bool)
    mask[1, 3:] = False
    for second in (False, True):
        assert torch.autograd.gradcheck(
            lambda a, s=second: kl_divergence(a, sigma, mask, second_softmax=s), (attention,)
        )


def test_a_token_that_attention_dropout_left_nothing_does_not_break_the_gradient():
    attention = torch.tensor([[0.5, 0.0, 0.5]], requires_grad=True)
    kl_divergence(attention, torch.zeros(1, 3), torch.ones(1, 3, dtype=torch.bool)).sum().backward()
    assert attention.grad.isfinite().all()


def test_descending_the_loss_moves_attention_towards_salience(classifier):
    step, encoded = step_of(classifier, TEXTS[2:])
    loss = build(term("salience", kl="paper"))
    loss.fit(encoded)
    optimiser = torch.optim.SGD(classifier.model.parameters(), lr=0.5)
    before = loss.loss(step)["salience"].item()
    for _ in range(20):
        optimiser.zero_grad()
        loss.loss(step_of(classifier, TEXTS[2:])[0])["salience"].backward()
        optimiser.step()
    assert loss.loss(step_of(classifier, TEXTS[2:])[0])["salience"].item() < 0.7 * before


def test_texts_that_training_never_saw_are_scored_when_they_come(classifier):
    step, encoded = step_of(classifier)
    objective = Weighted((term("task"), term("salience", 0.5, kl="paper", salience_of="tfidf")))
    objective.fit(encoded[:1])
    losses = objective.loss(step)
    assert losses["loss"].item() == pytest.approx(
        losses["task"].item() + 0.5 * losses["salience"].item()
    )
    # the second text, "dull", shares no piece with the first: all its salience is 0
    alpha = attention_of(step, 1, len(encoded[1].tokens)).astype(float)
    single = build(term("salience", kl="paper", salience_of="tfidf"))
    single.fit(encoded[:1])
    value = single.loss(step_of(classifier, ["dull"])[0])["salience"].item()
    assert value == pytest.approx(math.log(len(alpha)) - entropy(alpha), rel=1e-4)


def test_salience_from_labels_is_fitted_with_the_label_0_too(classifier):
    """χ² of scikit-learn, with the labels of the texts."""
    step, encoded = step_of(classifier)
    loss = build(term("salience", kl="paper", salience_of="chi_squared"))
    loss.fit(encoded)
    fitted = salience("chi_squared")
    tokens = [Tokens.of(text) for text in encoded]
    fitted.fit(tokens, [1, 0, 0])
    for text in tokens:
        assert loss.remembered[text].numpy() == pytest.approx(fitted.score(text), rel=1e-6)
    assert fitted.score(tokens[0]).any()  # with one class all would be 0


def test_cross_entropy_of_probabilities_applies_the_softmax_twice(classifier):
    step, _ = step_of(classifier)
    logits = step.forward().logits.detach().numpy().astype(float)
    twice = log_softmax(softmax(logits, axis=-1), axis=-1)
    expected = -np.mean([twice[0, 1], twice[1, 0], twice[2, 0]])
    value = build(term("task_on_probabilities")).loss(step)["task"].item()
    assert value == pytest.approx(expected, rel=1e-5)


def test_an_unknown_reading_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="unknown reading of the KL term 'papr'; did you mean"):
        build(term("salience", kl="papr"))
