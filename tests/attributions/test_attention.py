from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from erlib.attributions import attribute
from erlib.attributions.attention import rolled_out
from erlib.models.layers import layer_output
from tests import tiny
from tests.attributions import toy

TEXTS = ["a great film , truly moving", "dull", "the plot is bad and the acting is unfunny ."]


def _maps(classifier, text) -> np.ndarray:
    """[layer, head, query, key] of one text alone."""
    with torch.no_grad():
        output = classifier.forward(tiny.inputs(classifier, [text]))
    return np.stack([a[0].numpy() for a in output.attentions])


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_attention_is_the_row_of_the_token_that_the_head_reads(family):
    classifier = tiny.classifier(family)
    for text, found in zip(TEXTS, _scores(classifier, "attention", per_layer=True), strict=True):
        maps = _maps(classifier, text)
        row = -1 if family in tiny.DECODERS else 0
        np.testing.assert_allclose(found.layers, maps.mean(1)[:, row], atol=1e-6)
        np.testing.assert_allclose(found.scores, maps[-1].mean(0)[row], atol=1e-6)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_attention_of_all_layers_is_the_mean_over_layers_heads_and_real_rows(family):
    classifier = tiny.classifier(family)
    for text, found in zip(TEXTS, _scores(classifier, "attention_all"), strict=True):
        np.testing.assert_allclose(found.scores, _maps(classifier, text).mean((0, 1, 2)), atol=1e-6)


def test_attention_of_all_layers_can_be_read_at_one_row():
    classifier = tiny.classifier("bert")
    found = _scores(classifier, "attention_all", variant="read_row")
    for text, one in zip(TEXTS, found, strict=True):
        np.testing.assert_allclose(one.scores, _maps(classifier, text).mean((0, 1))[0], atol=1e-6)


def test_rollout_of_uniform_attention_has_its_closed_form():
    n, layers = 5, 4
    uniform = [torch.full((n, n), 1 / n, dtype=torch.double)] * layers
    expected = np.eye(n) / 2**layers + (1 - 2.0**-layers) / n
    np.testing.assert_allclose(rolled_out(uniform)[-1], expected, atol=1e-12)


def test_rollout_of_the_identity_is_the_identity():
    assert torch.equal(rolled_out([torch.eye(4)] * 3)[-1], torch.eye(4))


def test_rollout_stays_a_distribution_when_dropout_has_taken_from_the_rows():
    dropped = torch.tensor([[0.0, 0.6], [0.5, 0.5]])
    expected = torch.tensor([[1 / 1.6, 0.6 / 1.6], [0.25, 0.75]])
    torch.testing.assert_close(rolled_out([dropped])[-1], expected)
    deep = rolled_out([dropped, 1.3 * dropped, dropped.T])[-1]
    torch.testing.assert_close(deep.sum(dim=-1), torch.ones(2))


def test_rollout_multiplies_later_layers_from_the_left():
    first, second = (torch.rand(4, 4, generator=torch.Generator().manual_seed(i)) for i in (0, 1))
    first, second = (a / a.sum(-1, keepdim=True) for a in (first, second))
    expected = (second + torch.eye(4)) / 2 @ ((first + torch.eye(4)) / 2)
    torch.testing.assert_close(rolled_out([first, second])[-1], expected)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_rollout_of_a_model_is_the_product_of_its_layers_and_sums_to_one(family):
    classifier = tiny.classifier(family)
    for text, found in zip(TEXTS, _scores(classifier, "rollout", per_layer=True), strict=True):
        product, row = None, -1 if family in tiny.DECODERS else 0
        for layer, a in enumerate(_maps(classifier, text).mean(1)):
            mixed = a + np.eye(len(a))
            mixed /= mixed.sum(1, keepdims=True)
            product = mixed if product is None else mixed @ product
            np.testing.assert_allclose(found.layers[layer], product[row], atol=1e-6)
        assert found.scores.sum() == pytest.approx(1, abs=1e-5)
        assert np.array_equal(found.scores, found.layers[-1])


def test_rollout_says_why_it_has_nothing_to_say_of_a_bilstm(tmp_path):
    with pytest.raises(ValueError, match="'jwa' has a single attention row"):
        attribute(toy.jwa(tmp_path), TEXTS, "rollout")


@pytest.mark.parametrize("variant", ["regex", "saloss"])
def test_scaled_attention_is_the_product_of_mean_weight_and_mean_finite_difference(variant):
    classifier = tiny.classifier("bert")
    classifier.model.double()
    (found,) = attribute(classifier, TEXTS[:1], "scaled_attention", variant=variant, level="token")
    with torch.no_grad():
        output = classifier.forward(tiny.inputs(classifier, TEXTS[:1]))
        a = output.attentions[-1]

        def f(changed: torch.Tensor) -> float:
            state = layer_output(classifier.layers[-1], output.hidden_states[-2], changed)
            logits = classifier.model.classifier(classifier.model.bert.pooler(state))[0]
            return float((logits.softmax(-1) if variant == "saloss" else logits)[found.target])

        slopes = np.zeros(a.shape[1::2])  # [head, key]
        for h, t in np.ndindex(*slopes.shape):
            step = torch.zeros_like(a)
            step[0, h, 0, t] = 1e-5
            slopes[h, t] = (f(a + step) - f(a - step)) / 2e-5
    expected = a[0, :, 0].mean(0).numpy() * slopes.mean(0)
    of_products = (a[0, :, 0].numpy() * slopes).mean(0)
    real = ~np.array(found.special)
    np.testing.assert_allclose(found.scores[real], expected[real], atol=1e-9)
    assert np.abs(of_products - expected)[real].max() > 1e-5  # the mistake would show
    assert np.isneginf(found.scores[~real]).all()


def test_attention_of_a_bilstm_is_its_one_row_in_every_method(tmp_path):
    classifier = toy.jwa(tmp_path)
    with torch.no_grad():
        rows = [
            classifier.forward(tiny.inputs(classifier, [t])).attentions[0][0, 0, 0] for t in TEXTS
        ]
    for name in ("attention", "attention_all"):
        for row, found in zip(rows, _scores(classifier, name), strict=True):
            np.testing.assert_allclose(found.scores, row, atol=1e-6)


def test_specials_are_kept_put_last_or_left_out_of_the_sum_as_each_paper_does():
    classifier = tiny.classifier("bert")
    plain, er_lens, regex, saloss = (
        attribute(classifier, TEXTS[:1], "attention", variant=v, level="token")[0]
        for v in (None, "er_lens", "regex", "saloss")
    )
    special = np.array(plain.special)
    assert special.sum() == 2
    np.testing.assert_array_equal(er_lens.scores, plain.scores)
    assert plain.scores[special].min() > 0
    assert np.isneginf(regex.scores[special]).all() and np.isneginf(saloss.scores[special]).all()
    np.testing.assert_array_equal(regex.scores[~special], plain.scores[~special])
    words = plain.scores[~special]
    np.testing.assert_allclose(saloss.scores[~special], words / words.sum(), rtol=1e-6)


def test_random_scores_are_normal_draws_that_change_with_seed_and_text():
    classifier = tiny.classifier("bert")
    texts = [f"{a} {b} film dull plot acting" for a in "abcdefgh" for b in "abcdefgh"]
    first, second = (attribute(classifier, texts, "random", seed=s, level="token") for s in (0, 1))
    assert kstest(np.concatenate([a.scores for a in first]), "norm").pvalue > 0.01
    assert all(abs(a.scores - b.scores).min() > 0 for a, b in zip(first, second, strict=True))
    assert abs(first[0].scores[:5] - first[1].scores[:5]).min() > 0


def _scores(classifier, method, **options):
    return attribute(classifier, TEXTS, method, level="token", **options)
