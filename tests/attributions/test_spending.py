"""How much is spent on a text is said beside the variant, and only to a method that reads it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.polynomial.legendre import leggauss
from torch import nn

from erlib.attributions import METHODS, attribute
from erlib.attributions.attribute import attribute_encoded
from erlib.attributions.spending import check_spending, own_spending
from erlib.attributions.variants import Options
from tests import tiny
from tests.attributions import toy
from tests.attributions.plain import TEXT, Plain


@pytest.mark.parametrize("variant", [None, "ivra"])
def test_integrated_gradients_has_as_many_points_as_it_is_given(variant):
    classifier = tiny.classifier("bert")
    f = Plain(classifier)
    nodes, weights = (torch.tensor(a, dtype=torch.float32) for a in leggauss(3))
    slopes = f.gradient((nodes[:, None, None] + 1) / 2 * f.x)  # [point, token, dim]
    expected = (f.x[0] * (weights[:, None, None] / 2 * slopes).sum(0)).sum(-1)
    options = {"variant": variant, "level": "token", "options": {"steps": 3}}
    (found,) = attribute(classifier, [TEXT], "integrated_gradients", **options)
    np.testing.assert_allclose(found.scores, expected, atol=1e-6)


def test_lime_asks_about_no_more_copies_than_it_is_given():
    classifier = toy.Toy(toy.SumOverTokens(nn.Linear(toy.DIM, 2)))
    asked: list[int] = []
    classifier.model.net.register_forward_hook(lambda module, inputs, out: asked.append(len(out)))
    text = toy.text(list(range(3, 15)), label=1)  # 4096 masks
    for options in ({"samples": 50}, None):
        attribute_encoded(classifier, [text], "lime", target="gold", options=options)
    few, all_of_them = asked[0], sum(asked[1:])
    assert 25 < few <= 50 and 250 < all_of_them <= 500


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        ("attention", {"steps": 9}, r"takes no 'steps'; .*integrated_gradients \(steps\)"),
        ("lime", {"steps": 9}, "unknown option of lime 'steps'; known: samples"),
        ("integrated_gradients", {"step": 9}, "did you mean 'steps'"),
        ("integrated_gradients", {"baseline": 9}, "unknown option .* 'baseline'; known: steps"),
        ("integrated_gradients", {"steps": 0}, "steps must be a whole number of at least 1, not 0"),
        ("integrated_gradients", {"steps": 9.5}, "whole number of at least 1, not 9.5"),
        ("integrated_gradients", {"steps": True}, "whole number of at least 1, not True"),
    ],
)
def test_what_a_method_does_not_read_is_refused_with_what_it_does(method, options, said):
    with pytest.raises(ValueError, match=said):
        attribute(tiny.classifier("bert"), [TEXT], method, options=options)


def test_of_several_methods_each_is_given_its_own():
    methods = ("deeplift", "gradshap", "integrated_gradients")
    given = {"steps": 10, "samples": 3}
    check_spending(given, *methods)
    assert [own_spending(given, m) for m in methods] == [{}, {"samples": 3}, {"steps": 10}]
    with pytest.raises(ValueError, match="an evaluation without a method takes no 'steps'"):
        check_spending(given)


def test_what_a_method_spends_is_a_count_among_the_options():
    assert {m.spends: type(getattr(Options(), m.spends)) for m in METHODS.values() if m.spends} == {
        "steps": int,
        "samples": int,
    }
