from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

from erlib.attributions import attribute
from erlib.attributions.value_zeroing import turned
from erlib.models.families import body_of, family_of
from tests import tiny
from tests.attributions import toy

VALUES = {
    "bert": "attention.self.value",
    "distilbert": "attention.v_lin",
    "llama": "self_attn.v_proj",
}
TEXT = tiny.TEXTS[2]


@pytest.mark.parametrize("family", VALUES)
def test_a_layers_map_is_one_minus_the_cosine_to_the_models_own_output_with_a_value_zeroed(family):
    classifier = tiny.classifier(family).eval()
    classifier.model.double()
    inputs = tiny.inputs(classifier, [TEXT])
    layer = body_of(classifier.model).get_submodule(family_of(family).layers)[0]
    seen = []
    layer.register_forward_hook(
        lambda m, a, out: seen.append(out[0] if isinstance(out, tuple) else out)
    )
    n = inputs["input_ids"].shape[1]
    with torch.no_grad():
        output = classifier.forward(inputs)
        for j in range(n):

            def zero(module, args, value, j=j):
                value = value.clone()
                value[:, j] = 0
                return value

            hook = layer.get_submodule(VALUES[family]).register_forward_hook(zero)
            classifier.forward(inputs)
            hook.remove()
        y, *zeroed = (states.reshape(n, -1) for states in seen)
        c = torch.stack([1 - cosine_similarity(y, one, dim=-1) for one in zeroed], dim=1)
        first = turned(
            classifier.layers[0], output.hidden_states[0][0], output.attentions[0][0], at_once=3
        )
    torch.testing.assert_close(
        first, c / c.sum(1, keepdim=True), atol=1e-6, rtol=1e-5
    )  # Llama's norms are float32


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_rows_are_distributions_multiplied_over_layers_and_no_batch_changes_them(family):
    classifier = tiny.classifier(family)
    together = attribute(
        classifier, tiny.TEXTS, "value_zeroing", level="token", per_layer=True, batch_size=3
    )
    for text, found in zip(tiny.TEXTS, together, strict=True):
        (alone,) = attribute(classifier, [text], "value_zeroing", level="token")
        np.testing.assert_allclose(found.scores, alone.scores, atol=1e-6)
        np.testing.assert_allclose(found.layers.sum(axis=1), 1, atol=1e-5)
        np.testing.assert_array_equal(found.layers[-1], found.scores)
        assert (found.scores >= 0).all()


def test_layers_are_multiplied_without_an_identity():
    classifier = tiny.classifier("bert").eval()
    inputs = tiny.inputs(classifier, [TEXT])
    with torch.no_grad():
        out = classifier.forward(inputs)
        first, second = (
            turned(view, h[0], a[0], at_once=99)
            for view, h, a in zip(
                classifier.layers, out.hidden_states, out.attentions, strict=False
            )
        )
    (found,) = attribute(classifier, [TEXT], "value_zeroing", level="token")
    np.testing.assert_allclose(found.scores, (second @ first)[0].numpy(), atol=1e-6)


def test_a_small_budget_changes_nothing_and_the_bilstm_is_refused(tmp_path):
    classifier = tiny.classifier("bert")
    plenty, little = (
        attribute(classifier, [TEXT], "value_zeroing", max_memory=size)[0]
        for size in ("1GB", "200kB")
    )
    np.testing.assert_allclose(plenty.scores, little.scores, atol=1e-6)
    with pytest.raises(ValueError, match="'value_zeroing' takes values out of Transformer layers"):
        attribute(toy.jwa(tmp_path), ["dull film"], "value_zeroing")
