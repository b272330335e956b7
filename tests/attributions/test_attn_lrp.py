from __future__ import annotations

import numpy as np
import pytest
import torch

from erlib.attributions import attribute
from erlib.attributions.attn_lrp import linear_logits, relevance
from erlib.models.families import activation_of, family_of
from erlib.models.layers import trace
from tests import tiny
from tests.attributions import oracles, toy

ENCODERS = [family for family in tiny.FAMILIES if family not in tiny.DECODERS]
TEXT = tiny.TEXTS[2]


def _double(family: str):
    classifier = tiny.classifier(family).eval()
    classifier.model.double()
    return classifier, tiny.inputs(classifier, [TEXT])


@pytest.mark.parametrize("family", ENCODERS)
def test_it_is_relevance_handed_back_step_by_step_and_none_is_lost(family):
    classifier, inputs = _double(family)
    target = 1
    with torch.no_grad():
        output = classifier.forward(inputs)
    part, names = classifier.model.get_submodule, family_of(family)
    activation = activation_of(classifier.model.config, classifier.head)()
    traces = trace(classifier, inputs, output)
    expected, kept = oracles.attn_lrp(
        classifier, traces, part(names.dense), activation, part(names.out), target
    )
    h, mask = output.hidden_states[0], inputs["attention_mask"]
    found = relevance(classifier, h, mask, torch.tensor([target]))[0].detach()
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-7)
    assert float(found.sum()) + kept == pytest.approx(float(output.logits[0, target]), abs=1e-8)
    assert abs(kept) > 1e-3  # so the ledger is not empty


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_without_biases_and_attention_the_scores_sum_to_the_logit(family):
    classifier, inputs = _double(family)
    for name, weight in classifier.model.named_parameters():
        norm = weight.ndim == 1 and name.endswith("weight")
        if weight.ndim == 1 and not norm and "embeddings" not in name:
            weight.data.zero_()
    for view in classifier.layers:
        view.output.weight.data.zero_()  # a view of the model's own
    with torch.no_grad():
        output = classifier.forward(inputs)
    h, mask = output.hidden_states[0], inputs["attention_mask"]
    found = relevance(classifier, h, mask, torch.tensor([1])).detach()
    assert abs(float(output.logits[0, 1])) > 1e-3
    assert float(found.sum()) == pytest.approx(
        float(output.logits[0, 1]), rel=1e-6
    )  # Llama's norms are float32


@pytest.mark.parametrize("head", ["er", "pooled", "agreement", "own"])
@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_the_linear_network_has_the_models_own_logits(family, head):
    classifier = tiny.classifier(family, head=head).eval()
    inputs = tiny.inputs(classifier)
    output = classifier.forward(inputs)
    h = output.hidden_states[0]
    rebuilt = linear_logits(classifier, h, h, inputs["attention_mask"])
    torch.testing.assert_close(rebuilt, output.logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_text_has_the_same_scores_alone_and_in_a_padded_batch(family):
    classifier = tiny.classifier(family)
    together = attribute(classifier, tiny.TEXTS, "attn_lrp", batch_size=3)
    for text, expected in zip(tiny.TEXTS, together, strict=True):
        (alone,) = attribute(classifier, [text], "attn_lrp")
        np.testing.assert_allclose(alone.scores, expected.scores, atol=1e-5)


def test_it_explains_the_class_that_is_asked_for_and_spans():
    classifier = tiny.classifier("bert")
    first, second = (attribute(classifier, [TEXT], "attn_lrp", target=t)[0] for t in (0, 1))
    assert abs(first.scores - second.scores).max() > 1e-3
    span = tiny.classifier("bert", task="span")
    (found,) = attribute(span, [{"question": "which film ?", "context": TEXT}], "attn_lrp")
    assert np.isfinite(found.scores).all() and np.ptp(found.scores) > 0


def test_the_bilstm_is_refused(tmp_path):
    with pytest.raises(ValueError, match="'attn_lrp' has rules for the steps of a Transformer"):
        attribute(toy.jwa(tmp_path), ["dull film"], "attn_lrp")
