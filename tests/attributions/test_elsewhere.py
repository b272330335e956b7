from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from captum.attr import LayerIntegratedGradients

from erlib.attributions import attribute
from erlib.attributions.elsewhere import from_elsewhere
from tests import tiny

TEXT = "the acting is unfunny ."  # "acting" and "unfunny" fall into pieces


@pytest.fixture(scope="module")
def model():
    return tiny.classifier("bert")


@pytest.fixture(scope="module")
def encoded(model):
    return model.encode([TEXT])[0]


def words(scores, encoded):
    return from_elsewhere("theirs", scores, encoded, 0)


def test_what_captum_itself_gives_is_what_our_method_gives(model, encoded):
    inputs = model.batch([encoded]).inputs
    embedding = model.model.bert.embeddings.word_embeddings

    def logit(ids, mask, types):
        return model.model(input_ids=ids, attention_mask=mask, token_type_ids=types).logits

    captum = LayerIntegratedGradients(logit, embedding)
    rest = (inputs["attention_mask"], inputs["token_type_ids"])
    given = captum.attribute(
        inputs["input_ids"],
        baselines=torch.zeros_like(inputs["input_ids"]),
        additional_forward_args=rest,
        target=1,
        n_steps=50,
    ).sum(-1)  # [1, token], in the graph or not
    tokens = given[0].detach().numpy()
    expected = np.zeros(5)
    for token, word in zip(tokens, encoded.word_ids, strict=True):
        if word >= 0:
            expected[word] += token
    found = words(given, encoded)
    assert found.tokens == TEXT.split()
    assert found.scores == pytest.approx(expected, abs=1e-12)


def test_our_own_token_scores_come_back_as_our_word_scores(model):
    [by_token] = attribute(model, [TEXT], "input_x_gradient", level="token")
    [by_word] = attribute(model, [TEXT], "input_x_gradient")
    [encoded] = model.encode([TEXT])
    for given in (by_token, by_token.scores, by_token.scores[1:-1], by_word, by_word.scores):
        assert words(given, encoded).scores == pytest.approx(by_word.scores, abs=1e-6)


@pytest.mark.parametrize(
    "pieces",
    [
        ["the ", "act", "ing ", "is ", "un", "funny ", "."],  # SHAP's
        ["<s>", "The", "Ġact", "ing", "Ġis", "Ġun", "funny", "Ġ.", "</s>"],
        ["▁the", "▁act", "ing", "▁is", "▁un", "funny", "▁", "."],
        ["the</w>", "act", "ing</w>", "is</w>", "un", "funny</w>", ".</w>"],
        ["[CLS]", "the", "act", "##ing", "is", "un", "##funny", ".", "[SEP]"],
    ],
)
def test_pieces_of_other_tokenizers_are_laid_along_the_text(pieces, encoded):
    said = {"act": 2.0, "ing": -0.5, "un": -4.0, "funny": 3.0, "the": 1.0, "is": 0.0, ".": 0.25}
    plain = [piece.strip("Ġ▁# ").replace("</w>", "").lower() for piece in pieces]
    values = [said.get(piece, 100.0 if "[" in piece else 0.0) for piece in plain]
    found = words((pieces, values), encoded)
    assert found.scores.tolist() == [1.0, 1.5, 0.0, -1.0, 0.25]


def test_accents_and_capitals_do_not_matter_and_a_word_like_a_special_is_a_word(model):
    [encoded] = model.encode([["Café", "<s>", "film"]])
    found = words((["cafe", "<s>", "film"], [1, 2, 3]), encoded)
    assert found.scores.tolist() == [1, 2, 3]


def test_any_object_with_tokens_and_scores_will_do(encoded):
    given = SimpleNamespace(tokens=TEXT.split(), scores=torch.arange(5.0))
    assert words(given, encoded).scores.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        (np.ones(17), r"17 scores, where the model reads \d+ tokens .* and the text has 5 words"),
        (np.ones((5, 3)), r"one number for each token or word .* not \(5, 3\)"),
        ([1, 2, np.nan, 4, 5], "not finite"),
        (["a", "b"], "one number for each token or word"),
        ((TEXT.split(), [1, 2]), "5 pieces have 2 scores"),
        ((["the", "end"], [1, 2]), r"the piece 'end' is not what stands there \('actingis"),
        ((["the", "acting"], [1, 2]), "the word 'is' has no score"),
        ((1, 2, 3), "a pair"),
    ],
)
def test_what_does_not_fit_the_text_is_refused_with_what_would(scores, said, encoded):
    with pytest.raises(ValueError, match=said):
        words(scores, encoded)
