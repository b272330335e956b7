from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from erlib.attributions import attribute
from erlib.attributions.alti import contributions, rolled_out
from erlib.models import load_classifier
from erlib.models.families import body_of, family_of
from erlib.models.layers import LAYER_NAMES, Linear
from tests import tiny
from tests.attributions import oracles

ENCODERS = [family for family in tiny.FAMILIES if family not in tiny.DECODERS]
TEXT = tiny.TEXTS[2]


def _double(family: str):
    """A tiny classifier in float64, one text, and the states and maps of its forward pass."""
    classifier = tiny.classifier(family)
    classifier.model.double()
    inputs = tiny.inputs(classifier, [TEXT])
    with torch.no_grad():
        output = classifier.forward(inputs)
    states = [h[0] for h in output.hidden_states]
    return classifier, inputs, states, [a[0] for a in output.attentions]


@pytest.mark.parametrize("family", ENCODERS)
def test_the_transformed_vectors_sum_to_the_models_own_first_layer_norm(family):
    classifier, inputs, states, attentions = _double(family)
    layers = body_of(classifier.model).get_submodule(family_of(family).layers)
    seen = []
    for layer in layers:
        norm = layer.get_submodule(LAYER_NAMES[family].norm1)
        norm.register_forward_hook(lambda module, args, output: seen.append(output[0]))
    classifier.forward(inputs)
    for view, h, attention, expected in zip(
        classifier.layers, states, attentions, seen, strict=False
    ):
        _, y = oracles.alti_layer(view, h, attention)
        torch.testing.assert_close(y, expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("family", ENCODERS)
def test_contributions_in_blocks_of_any_size_are_those_of_the_whole_tensor(family):
    classifier, inputs, states, attentions = _double(family)
    expected, rolled = oracles.alti(classifier, inputs)
    for pairs in (1, 7, 100, 10_000):
        with torch.no_grad():
            for layer, view in enumerate(classifier.layers):
                c = contributions(view, states[layer], attentions[layer], pairs=pairs)
                torch.testing.assert_close(c, expected[layer], atol=1e-12, rtol=0)
            read = list(rolled_out(classifier.layers, states, attentions, 0, pairs=pairs))
        torch.testing.assert_close(read, [m[0] for m in rolled], atol=1e-12, rtol=0)


def test_rows_of_a_layer_are_distributions_that_differ_between_tokens():
    classifier, _, states, attentions = _double("bert")
    with torch.no_grad():
        c = contributions(classifier.layers[1], states[1], attentions[1], pairs=50)
    assert (c >= 0).all()
    torch.testing.assert_close(c.sum(-1), torch.ones(len(c), dtype=c.dtype))
    assert c.std(dim=1).min() > 1e-3


def test_a_token_that_attends_only_to_itself_is_made_of_itself():
    classifier, _, states, attentions = _double("bert")
    only_itself = torch.eye(len(states[0]), dtype=torch.float64).expand_as(attentions[0])
    with torch.no_grad():
        c = contributions(classifier.layers[0], states[0], only_itself, pairs=50)
    torch.testing.assert_close(c, only_itself[0], atol=1e-12, rtol=0)


def test_a_row_to_which_no_token_comes_near_is_uniform():
    classifier, _, states, _ = _double("bert")
    view, width = classifier.layers[0], tiny.WIDTH
    nothing = Linear(torch.zeros(width, width).double(), torch.zeros(width).double())
    h = states[0][1].expand(2, -1)  # two equal tokens, so that one β cancels both: y = 0
    view = replace(view, output=nothing)
    beta = view.norm1.bias - view.norm1(h[0])
    view = replace(view, norm1=replace(view.norm1, bias=beta))
    attention = torch.full((tiny.HEADS, 2, 2), 0.5).double()
    with torch.no_grad():
        c = contributions(view, h, attention, pairs=4)
    torch.testing.assert_close(c, torch.full((2, 2), 0.5).double())


@pytest.mark.parametrize("family", ENCODERS)
def test_scores_are_the_read_row_of_each_layer_and_padding_changes_nothing(family):
    classifier = tiny.classifier(family)
    together = attribute(
        classifier, tiny.TEXTS, "alti", level="token", per_layer=True, batch_size=3
    )
    classifier.model.double()
    for text, result in zip(tiny.TEXTS, together, strict=True):
        _, rolled = oracles.alti(classifier, tiny.inputs(classifier, [text]))
        rows = torch.stack([m[0] for m in rolled]).float().numpy()
        assert result.layers == pytest.approx(rows, abs=1e-5)
        assert (result.scores == result.layers[-1]).all()
        assert result.scores.sum() == pytest.approx(1, abs=1e-5)


def test_the_memory_budget_changes_no_score_and_one_too_small_is_refused():
    classifier = tiny.classifier("bert")
    (free,) = attribute(classifier, [TEXT], "alti", level="token")
    (tight,) = attribute(classifier, [TEXT], "alti", level="token", max_memory="60KB")
    assert tight.scores == pytest.approx(free.scores, abs=1e-6)
    with pytest.raises(ValueError, match="raise max_memory"):
        attribute(classifier, [TEXT], "alti", max_memory="2KB", batch_size=1)


@pytest.mark.parametrize("family", tiny.DECODERS)
def test_pre_norm_decoders_are_refused_with_the_reason(family):
    with pytest.raises(ValueError, match=f"'alti' does not apply to {family}.*pre-norm"):
        attribute(tiny.classifier(family), [TEXT], "alti")


def test_minilm_agrees_with_the_whole_tensor_in_double_precision():
    classifier = load_classifier("minilm", seed=0)
    text = "not a great film , but the acting is truly moving and the ending is very funny"
    (found,) = attribute(classifier, [text], "alti", level="token")
    classifier.model.double()
    _, rolled = oracles.alti(classifier, tiny.inputs(classifier, [text]))
    assert found.scores == pytest.approx(rolled[-1][0].numpy(), abs=1.5e-5)


def test_a_model_of_one_layer_is_rolled_out_too():
    (one,) = attribute(
        tiny.classifier("bert", layers=1), [TEXT], "alti", level="token", per_layer=True
    )
    assert one.layers.shape[0] == 1 and (one.layers[0] == one.scores).all()
    assert one.scores.sum() == pytest.approx(1, abs=1e-5)
