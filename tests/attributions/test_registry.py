from __future__ import annotations

import numpy as np
import pytest
import torch

from erlib.attributions import METHODS, attribute, attribution_table, method, register
from erlib.attributions.registry import Scores, described
from erlib.attributions.variants import VARIANTS, Options, options_of
from tests import tiny

# attributions.md §2: method, variant → explained class, of what, where, token score, baseline
PRESETS = {
    ("input_x_gradient", "er_lens"): ("gold", "logit", "entry", "sum", "zero"),
    ("input_x_gradient", "saloss"): ("predicted", "probability", "embeddings", "abs_sum", "zero"),
    ("input_x_gradient", "regex"): ("predicted", "logit", "embeddings", "l2", "zero"),
    ("input_x_gradient", "regex_guide"): ("gold", "logit", "embeddings", "l2", "zero"),
    ("input_x_gradient", "regex_guide_mean"): ("gold", "logit", "entry", "abs_mean", "zero"),
    ("input_x_gradient", "ivra"): ("predicted", "logit", "entry", "sum", "zero"),
    ("integrated_gradients", "regex"): ("predicted", "logit", "embeddings", "l2", "zero"),
    ("integrated_gradients", "regex_guide"): ("gold", "logit", "embeddings", "l2", "zero"),
    ("integrated_gradients", "entry"): ("predicted", "logit", "entry", "sum", "zero"),
    ("integrated_gradients", "saloss"): ("predicted", "probability", "embeddings", "sum", "zero"),
    ("integrated_gradients", "ivra"): ("predicted", "logit", "embeddings", "sum", "zero"),
    ("integrated_gradients", "agreement"): ("gold", "probability", "entry", "abs_sum", "pad"),
    ("deeplift", "regex"): ("predicted", "logit", "straight", "sum", "zero"),
    ("deeplift", "regex_hooked"): ("predicted", "logit", "entry", "sum", "zero"),
    ("deeplift", "regex_word_embedding"): ("predicted", "logit", "embeddings", "sum", "zero"),
    ("deeplift", "regex_guide"): ("gold", "logit", "embeddings", "l2", "zero"),
    ("deeplift", "regex_guide_mean"): ("gold", "logit", "entry", "abs_mean", "zero"),
    ("deeplift", "agreement"): ("gold", "probability", "entry", "abs_sum", "pad"),
    ("deepshap", "agreement"): ("gold", "probability", "entry", "abs_sum", "pad"),
    ("gradshap", "agreement"): ("gold", "probability", "entry", "abs_sum", "pad"),
    ("decompx_classifier", "er_lens"): ("gold", "logit", "embeddings", "sum", "zero"),
    ("lime", "ivra"): ("predicted", "probability", "embeddings", "sum", "zero"),
}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_what_the_papers_notes_say(preset):
    o = options_of(*preset, family="bert")
    assert (o.target, o.of, o.site, o.reduce, o.baseline) == PRESETS[preset]


def test_without_a_variant_the_contracts_defaults_hold():
    for name in METHODS:
        o = options_of(name, None, family="bert")
        of = "probability" if name == "lime" else "logit"
        reduce = "l2" if name == "saliency" else "sum"  # whose signed sum is zero
        assert (o.target, o.of, o.reduce) == ("predicted", of, reduce)
        local = name in ("input_x_gradient", "deeplift", "deepshap")
        assert (o.site, o.baseline) == ("entry" if local else "embeddings", "zero")
        assert (o.steps, o.normalise, o.absolute, o.specials) == (50, None, False, "keep")


def test_signed_products_are_at_the_word_embedding_where_a_paper_had_them_and_on_request_alone():
    there = {
        (name, variant)
        for name in ("input_x_gradient", "deeplift", "deepshap")
        for variant, o in VARIANTS[name].items()
        if o.site == "embeddings" and o.reduce != "l2"
    }
    assert there == {
        ("input_x_gradient", "word_embedding"),
        ("input_x_gradient", "saloss"),
        ("input_x_gradient", "saloss_signed"),
        ("deeplift", "hooked"),  # whose rules intervene
        ("deepshap", "hooked"),
        ("deeplift", "word_embedding"),
        ("deeplift", "regex_word_embedding"),
        ("deeplift", "regex_hooked_word_embedding"),  # whose rules intervene
        ("deepshap", "word_embedding"),
    }


def test_agreement_explains_a_logit_in_the_bilstm_alone():
    for name in ("integrated_gradients", "deeplift", "deepshap", "gradshap"):
        assert options_of(name, "agreement", family="jwa").of == "logit"
        assert options_of(name, "agreement", family="distilbert").of == "probability"


def test_variants_belong_to_methods_that_exist_and_unknown_ones_list_the_known():
    assert set(VARIANTS) <= set(METHODS)
    with pytest.raises(ValueError, match="unknown variant of 'rollout' 'saloss'.*er_lens"):
        options_of("rollout", "saloss", family="bert")


def test_a_new_method_is_one_function(monkeypatch):
    monkeypatch.setattr("erlib.attributions.registry.METHODS", dict(METHODS))

    @register("length", signed=False, scope="local", differentiable=False, needs=(), version=3)
    def length(request):
        """How long the text is."""
        assert request.options == Options()
        return Scores(request.mask.sum(1, keepdim=True).expand_as(request.mask).float())

    assert method("length").version == 3 and method("length").summary == "How long the text is."
    texts = ["dull", "a great film"]
    for found in attribute(tiny.classifier("bert"), texts, "length", level="token"):
        np.testing.assert_array_equal(found.scores, len(found.tokens))
    with pytest.raises(ValueError, match="'length' has no variants"):
        attribute(tiny.classifier("bert"), texts, "length", variant="er_lens")


def test_a_pass_is_in_the_graph_only_for_methods_that_need_gradients(monkeypatch):
    monkeypatch.setattr("erlib.attributions.registry.METHODS", dict(METHODS))
    kept = {}
    for name, needs in (("with", ("gradients",)), ("without", ("attentions",))):

        @register(name, signed=True, scope="local", differentiable=False, needs=needs, version=1)
        def look(request, name=name):
            """Whether there is a graph."""
            kept[name] = request.output.logits.requires_grad
            return Scores(torch.zeros(request.mask.shape))

        for target in ("predicted", "gold"):
            attribute(tiny.classifier("bert"), ["dull"], name, target=target, labels=[0])
            assert kept[name] == (name == "with")


def test_the_table_is_made_from_the_registry_and_documents_attribute():
    table = attribution_table()
    assert list(table.index) == list(METHODS)
    for name, row in table.iterrows():
        assert row["version"] == METHODS[name].version and row["summary"].endswith(".")
        assert row["variants"] == ", ".join(VARIANTS.get(name, {}))
        assert name in attribute.__doc__ and row["summary"] in attribute.__doc__
    assert table.loc["rollout", "per_layer"] and not table.loc["lime", "per_layer"]
    assert table.loc["deeplift", "variants"].startswith("captum, hooked")
    assert table.loc["deepshap", "may_equal"] == "input_x_gradient, deeplift"
    assert not table.loc["rollout", "may_equal"]


def test_the_table_says_of_each_method_what_it_declares():
    said = described().split("\n")
    place = {line.split()[0]: i for i, line in enumerate(said) if line[4:5].strip()}
    assert list(place) == list(METHODS)
    for name, declared in METHODS.items():
        facts = said[place[name] + 1].strip().split("; needs: ")
        assert facts[0].split(", ")[0] == ("signed" if declared.signed else "unsigned")
        assert facts[0].split(", ")[1] == declared.scope
        assert ("per layer" in facts[0]) == declared.per_layer
        assert ("differentiable" in facts[0]) == declared.differentiable
        assert facts[1] == (", ".join(declared.needs) or "nothing")
