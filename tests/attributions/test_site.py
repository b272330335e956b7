"""Where in the model an attribution is taken, and what it can see from there."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from captum.attr import DeepLift
from torch import Tensor, nn

from erlib.attributions import attribute
from erlib.attributions.gradients import deeplift
from erlib.attributions.registry import Request
from erlib.attributions.variants import options_of
from erlib.models import load_classifier
from tests import tiny
from tests.attributions import toy
from tests.attributions.plain import TEXT, Plain

NORMALISED = ("bert", "roberta", "electra", "distilbert", "big_bird")  # LayerNorm ends the block


def _one(classifier, name, variant=None):
    (found,) = attribute(classifier, [TEXT], name, variant=variant, level="token")
    return found


def summands(classifier) -> tuple[Tensor, Tensor]:
    """(word, position + type) of TEXT, [token, D], from the tables of the embedding block."""
    (encoded,) = classifier.encode([TEXT])
    ids = torch.tensor(encoded.input_ids)
    places = torch.arange(len(ids))
    if classifier.family == "roberta":
        places = places + classifier.tokenizer.pad_token_id + 1
    body = classifier.model.base_model
    if classifier.family == "gpt2":
        return body.wte.weight[ids], body.wpe.weight[places]
    tables = body.embeddings
    other = tables.position_embeddings.weight[places]
    if classifier.family != "distilbert":
        other = other + tables.token_type_embeddings.weight[0]
    return tables.word_embeddings.weight[ids], other


@torch.no_grad()
@pytest.mark.parametrize("family", [*tiny.FAMILIES, "jwa"])
def test_what_enters_the_first_layer_is_normalised_where_the_family_normalises(family, tmp_path):
    classifier = toy.jwa(tmp_path) if family == "jwa" else tiny.classifier(family)
    inputs = tiny.inputs(classifier, [TEXT])
    if family == "jwa":
        expected = classifier.model.embedding(inputs["input_ids"])[0]
    elif family == "llama":
        expected = classifier.model.model.embed_tokens(inputs["input_ids"])[0]
    else:
        expected = sum(summands(classifier))
        if family in NORMALISED:
            expected = classifier.model.base_model.embeddings.LayerNorm(expected)
        if family == "electra":
            expected = classifier.model.electra.embeddings_project(expected)
    torch.testing.assert_close(classifier.forward(inputs).entry[0], expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("family", ["minilm", *NORMALISED])
def test_a_product_with_the_word_embedding_is_minus_that_with_position_and_type(family):
    minilm = family == "minilm"
    classifier = load_classifier("minilm", seed=0) if minilm else tiny.classifier(family)
    if family in ("roberta", "big_bird"):  # whose eps of 1e-5 shows beside small embeddings
        classifier.model.base_model.embeddings.LayerNorm.eps = 1e-12
    f = Plain(classifier)
    position = -(f.gradient(f.x)[0] * summands(classifier)[1].detach()).sum(-1).numpy()
    scores = _one(classifier, "input_x_gradient", "word_embedding").scores
    size = np.abs(position).max()
    np.testing.assert_allclose(scores, position, rtol=0, atol=1e-4 * size)
    default = _one(classifier, "input_x_gradient").scores
    assert np.abs(default - position).max() > 0.1 * size


@pytest.mark.parametrize(
    ("name", "variant", "site"),
    [
        ("deeplift", None, "entry"),
        ("deeplift", "hooked", "embeddings"),
        ("deeplift", "word_embedding", "embeddings"),
        ("deepshap", None, "entry"),
        ("deepshap", "word_embedding", "embeddings"),
        ("integrated_gradients", None, "embeddings"),
        ("integrated_gradients", "entry", "entry"),
        ("gradshap", None, "embeddings"),
        ("gradshap", "entry", "entry"),
    ],
)
def test_a_completeness_gap_is_to_the_change_of_the_function_at_its_site(name, variant, site):
    classifier = tiny.classifier("roberta")
    f = Plain(classifier, site=site)
    found = _one(classifier, name, variant)
    with torch.no_grad():
        change = float(f(f.x) - f(torch.zeros_like(f.x)))
    assert found.completeness_gap == pytest.approx(found.scores.sum() - change, abs=1e-5)
    assert abs(change) > 0.1


class StraightIntoBert(nn.Module):
    """A class's logit from word embeddings that the encoder reads as they are."""

    def __init__(self, model: nn.Module, label: int) -> None:
        super().__init__()
        self.model, self.label = model, label

    def forward(self, x: Tensor) -> Tensor:
        state = self.model.bert.encoder(x).last_hidden_state
        return self.model.classifier(self.model.bert.pooler(state))[:, self.label]


def _captum(f: nn.Module, x: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DeepLift(f).attribute(x.clone().requires_grad_()).detach()[0]


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "big_bird", "gpt2", "llama"])
def test_regex_puts_word_embeddings_straight_into_the_first_layer(family):
    classifier = tiny.classifier(family)
    words = Plain(classifier)
    f = Plain(classifier, label=words.label, site="entry")  # the class that the full model predicts
    if family == "bert":
        f = StraightIntoBert(classifier.model, words.label)
    found = _one(classifier, "deeplift", "regex")
    expected = _captum(f, words.x)
    special = np.array(found.special)
    assert found.target == words.label and np.isneginf(found.scores[special]).all()
    np.testing.assert_allclose(found.scores[~special], expected.sum(-1)[~special], atol=1e-5)
    with torch.no_grad():
        change = float(f(words.x) - f(torch.zeros_like(words.x)))
    assert found.completeness_gap == pytest.approx(float(expected.sum()) - change, abs=1e-5)
    full = _one(classifier, "deeplift", "regex_word_embedding").scores
    different = np.abs(full[~special] - found.scores[~special]).max() > 1e-2
    assert different == (family != "llama")  # whose layers read word embeddings as it is


def test_regex_is_the_default_at_a_bilstm_and_refuses_embeddings_that_do_not_fit(tmp_path):
    bilstm = toy.jwa(tmp_path)
    same = [_one(bilstm, "deeplift", variant).scores for variant in (None, "regex")]
    np.testing.assert_array_equal(*same)
    with pytest.raises(ValueError, match="size 12 cannot go straight .* 16 wide"):
        _one(tiny.classifier("electra"), "deeplift", "regex")


def test_texts_that_go_straight_in_are_never_padded(monkeypatch):
    classifier = tiny.classifier("bert")
    texts = ["dull", "a great film", "the plot is bad", "a bad plot", "the", "not a bad plot ,"]
    alone = [attribute(classifier, [text], "deeplift", variant="regex")[0] for text in texts]
    masks, forward = [], classifier.forward
    monkeypatch.setattr(
        classifier, "forward", lambda i, **k: masks.append(i["attention_mask"]) or forward(i, **k)
    )
    for options in ({"batch_size": 4}, {}):
        masks.clear()
        found = attribute(classifier, texts, "deeplift", variant="regex", **options)
        assert all(mask.all() for mask in masks) and max(map(len, masks)) > 1
        for one, same in zip(found, alone, strict=True):
            np.testing.assert_allclose(one.scores, same.scores, atol=1e-6)
    batch = classifier.batch(classifier.encode(["dull", "a great film"]))
    request = Request(
        classifier, batch, torch.zeros(2, dtype=torch.long), per_layer=False, seeds=[0, 0],
        options=options_of("deeplift", "regex", "bert"),
    )  # fmt: skip
    with pytest.raises(ValueError, match="different lengths"):
        deeplift(request)
