from __future__ import annotations

import numpy as np
import torch
from torch import nn

from erlib.attributions import attribute
from erlib.attributions.attribute import attribute_encoded
from tests import tiny
from tests.attributions import toy


def test_in_a_bag_of_words_a_word_loses_what_it_adds_where_a_pad_would_stand():
    classifier = toy.Toy(toy.SumOverTokens(nn.Linear(toy.DIM, 2)))
    words = [4, 9, 4, 7, 5]
    (found,) = attribute_encoded(classifier, [toy.text(words, label=1)], "occlusion", target="gold")
    shares = classifier.model.net.g(classifier.model.table.weight)[:, 1].detach().numpy()
    np.testing.assert_allclose(found.scores, shares[words] - shares[toy.PAD], atol=1e-6)


def test_it_is_the_difference_of_two_passes_with_all_pieces_of_a_word_gone():
    classifier = tiny.classifier("bert").eval()
    (found,) = attribute(classifier, ["a unfunny film"], "occlusion", target=1)
    (token,) = attribute(classifier, ["a unfunny film"], "occlusion", target=1, level="token")
    inputs = tiny.inputs(classifier, ["a unfunny film"])
    for word in range(3):
        pieces = torch.tensor([i == word for i in token.word_ids])
        less = inputs["input_ids"].masked_fill(pieces, classifier.tokenizer.pad_token_id)
        with torch.no_grad():
            whole = classifier.forward(inputs).logits[0, 1]
            without = classifier.forward({**inputs, "input_ids": less}).logits[0, 1]
        np.testing.assert_allclose(found.scores[word], float(whole - without), atol=1e-5)
        np.testing.assert_allclose(
            token.scores[pieces.numpy()], found.scores[word] / int(pieces.sum()), atol=1e-6
        )
