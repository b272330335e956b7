from __future__ import annotations

import numpy as np
import pytest
import torch

from erlib.attributions import attribute
from erlib.models.learned_attention import calibrate, explain
from tests import tiny

TEXTS = ["dull", "a great film , truly moving", "the plot is unfunny"]


def ready(family, explainer, **options):
    model = tiny.classifier(family, explainer=explainer, **options)
    calibrate(model, tiny.inputs(model))
    return model


@pytest.mark.parametrize(
    ("method", "explainer"),
    [("ivra", "ivra-softmax"), ("ivra", "ivra-sparsemax"), ("smat", "smat")],
)
@pytest.mark.parametrize("family", ["bert", "distilbert", "gpt2", "llama"])
def test_a_learned_map_is_the_module_s_r_alone_and_in_a_padded_batch(family, method, explainer):
    model = ready(family, explainer)
    together = attribute(model, TEXTS, method, variant="ivra", level="token", batch_size=3)
    for text, found in zip(TEXTS, together, strict=True):
        inputs = tiny.inputs(model, [text])
        with torch.no_grad():
            r = explain(model, model.forward(inputs), inputs["attention_mask"]).r[0].numpy()
        np.testing.assert_allclose(found.scores, r, atol=5e-6)  # the scales amplify rounding
        assert found.scores.sum() == pytest.approx(1, abs=1e-5)


def test_words_are_sums_of_pieces_and_specials_are_dropped():
    model = ready("bert", "ivra-sparsemax")
    (tokens,), (words,) = (
        attribute(model, ["a truly unfunny film"], "ivra", level=level)
        for level in ("token", "word")
    )
    special = np.array(tokens.special)
    assert words.tokens == ["a", "truly", "unfunny", "film"]
    assert words.scores.sum() == pytest.approx(tokens.scores[~special].sum(), abs=1e-6)


def test_ivra_has_a_distribution_for_every_layer_and_smat_has_none():
    (found,) = attribute(
        ready("bert", "ivra-softmax"), TEXTS[1:2], "ivra", level="token", per_layer=True
    )
    np.testing.assert_allclose(found.layers.sum(axis=1), [1.0, 1.0], atol=1e-6)
    with pytest.raises(ValueError, match="'smat' has no per-layer scores"):
        attribute(ready("bert", "smat"), TEXTS, "smat", per_layer=True)


def test_spans_and_pairs_are_explained():
    question = {"question": "which is best ?", "context": "a great film . dull ."}
    model = ready("bert", "ivra-sparsemax", task="span")
    (found,) = attribute(model, [question], "ivra", level="token")
    assert found.scores.sum() == pytest.approx(1, abs=1e-5) and isinstance(found.target, tuple)
    (pair,) = attribute(ready("electra", "smat"), [("a great film", "dull")], "smat")
    assert pair.tokens == ["a", "great", "film", "dull"] and pair.segment == [0, 0, 0, 1]


def test_a_method_wants_its_own_module():
    with pytest.raises(ValueError, match="no learned attention"):
        attribute(tiny.classifier("bert"), TEXTS, "ivra")
    with pytest.raises(ValueError, match="explainer 'smat', which 'ivra' cannot read; use 'smat'"):
        attribute(ready("bert", "smat"), TEXTS, "ivra")
