"""Methods that are said to be equal by construction are, and no others are said to be."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from erlib.attributions import attribute, equal_by_construction
from erlib.attributions.equal import NO_RULE, ONE_BASELINE
from tests import tiny
from tests.attributions import toy
from tests.attributions.plain import TEXT

METHODS = ("input_x_gradient", "deeplift", "deepshap", "gradshap")


def _classifiers(folder):
    """Models, and whether one of their activations is a module that DeepLIFT has a rule for."""
    yield toy.jwa(folder), True
    yield tiny.classifier("bert", head="er"), True
    yield tiny.classifier("distilbert", head="own"), True
    yield tiny.classifier("electra", head="own"), False
    yield tiny.classifier("gpt2", head="own"), False
    yield tiny.classifier("roberta", task="span"), False


def test_two_methods_agree_on_a_model_exactly_where_the_registry_says_so(tmp_path):
    for classifier, rule in _classifiers(tmp_path):
        scores = {m: attribute(classifier, [TEXT], m, level="token")[0].scores for m in METHODS}
        for a, b in combinations(METHODS, 2):
            said = equal_by_construction((a, None), (b, None), classifier)
            found = np.abs(scores[a] - scores[b]).max() < 1e-5 * np.abs(scores[a]).max()
            assert found == (said is not None), (classifier.family, classifier.head, a, b)
            if (a, b) == ("input_x_gradient", "deeplift"):
                assert said == (None if rule else NO_RULE)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (("deeplift", None), ("deepshap", "captum"), ONE_BASELINE),
        (("deepshap", "agreement"), ("deeplift", "agreement"), ONE_BASELINE),
        (("deeplift", "agreement_dropout"), ("deepshap", "agreement_dropout"), None),
        (("deeplift", "agreement"), ("deepshap", None), None),  # another baseline
        (("deeplift", "hooked"), ("deepshap", None), None),
        (("deeplift", "word_embedding"), ("deepshap", None), None),
        (("deeplift", None), ("input_x_gradient", None), None),  # depends on the model
        (("rollout", None), ("attention", None), None),
    ],
)
def test_without_a_model_only_what_holds_for_all_is_said(one, other, expected):
    assert equal_by_construction(one, other) == equal_by_construction(other, one) == expected


def test_input_x_gradient_is_deeplift_only_from_zero_by_captums_rule_and_at_one_site():
    classifier = tiny.classifier("gpt2", head="own")
    product = ("input_x_gradient", "word_embedding")
    assert equal_by_construction(product, ("deeplift", "word_embedding"), classifier) == NO_RULE
    for variant in (None, "hooked", "regex", "agreement"):
        assert equal_by_construction(product, ("deeplift", variant), classifier) is None
