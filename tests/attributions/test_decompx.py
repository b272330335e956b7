from __future__ import annotations

import pytest
import torch

from erlib.attributions import attribute, decompx
from erlib.models import load_classifier
from erlib.models.layers import layer_trace
from tests import tiny
from tests.attributions import oracles

ENCODERS = [family for family in tiny.FAMILIES if family not in tiny.DECODERS]
TEXT = tiny.TEXTS[2]
SHORT = "dull"  # few enough tokens for the two-product form of the feed-forward block


def _double(family: str, text: str = TEXT, **options):
    """A tiny classifier in float64, one text, and the output, states and maps of its pass."""
    classifier = tiny.classifier(family, **options)
    classifier.model.double()
    inputs = tiny.inputs(classifier, [text])
    with torch.no_grad():
        output = classifier.forward(inputs)
    states = [h[0] for h in output.hidden_states]
    return classifier, inputs, output, states, [a[0] for a in output.attentions]


def test_absdot_divides_a_bias_by_the_size_of_the_dot_products():
    parts = torch.tensor([[1.0, 0.0], [0.0, -2.0], [1.0, -1.0]])
    found = decompx.divide(parts.clone(), torch.tensor([3.0, 3.0]))  # |dots| 3, 6, 0
    torch.testing.assert_close(found, torch.tensor([[2.0, 1.0], [2.0, 0.0], [1.0, -1.0]]))


@pytest.mark.parametrize("text", [TEXT, SHORT])
@pytest.mark.parametrize("family", ENCODERS)
def test_the_parts_of_every_token_sum_to_its_hidden_state_in_every_layer(family, text):
    classifier, _, _, states, attentions = _double(family, text)
    everyone = range(len(states[0]))
    parts = decompx.decomposed(classifier.layers, states, attentions, everyone, rows=3, sources=2)
    for x, hidden in zip(parts, states[1:], strict=True):
        torch.testing.assert_close(x.sum(dim=1), hidden, atol=1e-9, rtol=0)


@pytest.mark.parametrize("text", [TEXT, SHORT])
@pytest.mark.parametrize("family", ENCODERS)
def test_parts_in_blocks_of_any_size_are_those_of_the_whole_tensor(family, text):
    classifier, inputs, _, states, attentions = _double(family, text)
    expected = oracles.decompx(classifier, inputs)
    for rows, sources in ((1, 1), (4, 3), (100, 100)):
        for reads in ([0], [0, 2], list(range(len(states[0])))):
            parts = decompx.decomposed(
                classifier.layers, states, attentions, reads, rows=rows, sources=sources
            )
            for x, whole in zip(parts, expected, strict=True):
                torch.testing.assert_close(x, whole[reads], atol=1e-9, rtol=0)


def test_texts_are_short_and_long_enough_for_both_forms_of_the_feed_forward_block():
    lengths = [len(e.input_ids) for e in tiny.classifier("bert").encode([SHORT, TEXT])]
    chosen = [decompx.row_map_is_cheaper(n, tiny.WIDTH, tiny.INNER) for n in lengths]
    assert chosen == [False, True]


def test_the_row_map_is_chosen_where_it_has_fewer_multiplications():
    # MiniLM: 2·n·384·1536 against 384²·1536 + n·384², equal at n = 219.4
    assert not decompx.row_map_is_cheaper(219, 384, 1536)
    assert decompx.row_map_is_cheaper(220, 384, 1536)


def test_without_biases_norms_and_feed_forward_it_is_value_rollout():
    classifier, _, _, states, attentions = _double("bert")
    n, width = states[0].shape
    x = torch.diag_embed(torch.ones(n).double())[..., None] * states[0]
    expected = x.permute(0, 2, 1).reshape(n * width, n)  # [(row, D), source]
    with torch.no_grad():
        for view, attention in zip(classifier.layers, attentions, strict=True):
            w_v = view.value.weight.view(tiny.HEADS, -1, width)
            w_o = view.output.weight.view(width, tiny.HEADS, -1)
            heads = range(tiny.HEADS)
            layer = sum(torch.kron(attention[h], w_o[:, h] @ w_v[h]) for h in heads)
            expected = expected + layer @ expected
            x = decompx.attend(view, x, attention, torch.arange(n), sources=4)
    found = x.permute(0, 2, 1).reshape(n * width, n)
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)


def test_in_the_first_layer_the_value_bias_goes_by_attention():
    classifier, _, _, states, attentions = _double("bert")
    view, everyone = classifier.layers[0], torch.arange(len(states[0]))
    with torch.no_grad():
        x = decompx.first_attention(view, states[0], attentions[0], everyone, rows=5)
        u1 = layer_trace(view, states[0][None], attentions[0][None]).u1[0]
        value = states[0][3] @ view.value.weight.T + view.value.bias
        mixed = attentions[0][:, 1, 3, None] * value.view(tiny.HEADS, -1)
        expected = view.output.weight @ mixed.flatten()
    torch.testing.assert_close(x[1, 3], expected)
    torch.testing.assert_close(x.sum(1) + view.output.bias, u1)  # only b_O is left to divide


def test_the_order_of_the_sources_does_not_matter():
    classifier, inputs, _, states, attentions = _double("bert")
    view, n = classifier.layers[1], len(states[0])
    x = oracles.decompx(classifier, inputs)[0]
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        trace = layer_trace(view, states[1][None], attentions[1][None])
        outcomes = []
        for parts in (x.clone(), x[:, order].clone()):
            parts = decompx.attend(view, parts, attentions[1], torch.arange(n), sources=2)
            decompx.finish_rows(view, parts, view.output.bias, trace, torch.arange(n))
            outcomes.append(parts)
    torch.testing.assert_close(outcomes[1], outcomes[0][:, order], atol=1e-10, rtol=0)


@pytest.mark.parametrize("family", ENCODERS)
def test_parts_of_the_logits_sum_to_each_logit(family):
    classifier, inputs, output, states, _ = _double(family, num_labels=3)
    x = oracles.decompx(classifier, inputs)[-1][0]
    with torch.no_grad():
        logits = decompx.class_parts(classifier, x, states[-1][0])
    torch.testing.assert_close(logits.sum(0), output.logits[0], atol=1e-9, rtol=0)


@pytest.mark.parametrize("label", [0, 1, 2])
def test_the_explained_class_is_the_one_asked_for(label):
    classifier = tiny.classifier("roberta", num_labels=3)
    (found,) = attribute(
        classifier, [TEXT], "decompx_classifier", target="gold", labels=[label], level="token"
    )
    with torch.no_grad():
        logits = classifier.forward(tiny.inputs(classifier, [TEXT])).logits[0]
    assert found.scores.sum() == pytest.approx(float(logits[label]), abs=1e-4)
    assert abs(found.completeness_gap) < 1e-4


def test_a_single_logit_is_explained_for_either_class():
    classifier = tiny.classifier("distilbert", head="agreement")
    with torch.no_grad():
        logit = float(classifier.forward(tiny.inputs(classifier, [TEXT])).logits)
    for label, sign in ((1, 1), (0, -1)):
        (found,) = attribute(
            classifier, [TEXT], "decompx_classifier", target="gold", labels=[label], level="token"
        )
        assert found.scores.sum() == pytest.approx(sign * logit, abs=1e-4)


@pytest.mark.parametrize("family", ENCODERS)
def test_a_spans_shares_sum_to_its_start_and_end_logits(family):
    classifier = tiny.classifier(family, task="span")
    question = {"question": "which is dull ?", "context": "the plot is dull and the acting is bad"}
    (found,) = attribute(classifier, [question], "decompx_classifier", level="token")
    with torch.no_grad():
        logits = classifier.forward(tiny.inputs(classifier, [question])).logits[0]
    start, end = found.target
    total = float(logits[start, 0] + logits[end, 1])
    assert found.scores.sum() == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("family", ENCODERS)
def test_scores_are_the_read_rows_lengths_and_padding_changes_nothing(family):
    classifier = tiny.classifier(family)
    together = attribute(
        classifier, tiny.TEXTS, "decompx", level="token", per_layer=True, batch_size=3
    )
    classifier.model.double()
    for text, result in zip(tiny.TEXTS, together, strict=True):
        layers = oracles.decompx(classifier, tiny.inputs(classifier, [text]))
        lengths = torch.stack([x[0].norm(dim=-1) for x in layers]).numpy()
        assert result.layers == pytest.approx(lengths, abs=1e-5, rel=1e-5)
        assert (result.scores == result.layers[-1]).all()


def test_one_layer_is_the_first_and_the_last():
    classifier, inputs, _, states, attentions = _double("bert", layers=1)
    (x,) = decompx.decomposed(classifier.layers, states, attentions, [0], rows=2, sources=2)
    (expected,) = oracles.decompx(classifier, inputs)
    torch.testing.assert_close(x, expected[:1], atol=1e-9, rtol=0)


def test_the_memory_budget_changes_no_score_and_one_too_small_is_refused():
    classifier = tiny.classifier("bert")
    (free,) = attribute(classifier, [TEXT], "decompx", level="token")
    (tight,) = attribute(classifier, [TEXT], "decompx", level="token", max_memory="120KB")
    assert tight.scores == pytest.approx(free.scores, rel=1e-5)
    with pytest.raises(ValueError, match="raise max_memory"):
        attribute(classifier, [TEXT], "decompx", max_memory="20KB", batch_size=1)


@pytest.mark.parametrize("method", ["decompx", "decompx_classifier"])
@pytest.mark.parametrize("family", tiny.DECODERS)
def test_pre_norm_decoders_are_refused_with_the_reason(family, method):
    with pytest.raises(ValueError, match=f"'{method}' does not apply to {family}.*pre-norm"):
        attribute(tiny.classifier(family), [TEXT], method)


def test_minilm_parts_sum_to_hidden_states_and_logits_in_single_precision():
    classifier = load_classifier("minilm", seed=0)
    text = "not a great film , but the acting is truly moving"
    with torch.no_grad():
        output = classifier.forward(tiny.inputs(classifier, [text]))
    states, attentions = [h[0] for h in output.hidden_states], [a[0] for a in output.attentions]
    everyone = range(len(states[0]))
    parts = decompx.decomposed(classifier.layers, states, attentions, everyone, rows=9, sources=9)
    for x, hidden in zip(parts, states[1:], strict=True):
        assert (x.sum(dim=1) - hidden).abs().max() < 1e-3
    (found,) = attribute(classifier, [text], "decompx_classifier", level="token")
    assert found.scores.sum() == pytest.approx(float(output.logits.max()), abs=1e-3)


def test_a_remembered_decomposition_is_used_once_more_and_changes_no_score(monkeypatch):
    classifier = tiny.classifier("bert")
    made = []
    decomposed = decompx.decomposed
    monkeypatch.setattr(
        decompx, "decomposed", lambda *a, **k: made.append(1) or decomposed(*a, **k)
    )

    def both():
        return [
            [one.scores.tolist() for one in attribute(classifier, tiny.TEXTS[:3], name)]
            for name in ("decompx", "decompx_classifier")
        ]

    alone = both()
    assert len(made) == 6
    with decompx.decompositions_remembered():
        assert both() == alone
    assert len(made) == 9
    with decompx.decompositions_remembered():
        other = load_classifier(str(tiny.directory("bert")), seed=5)
        attribute(other, tiny.TEXTS[:1], "decompx")
        attribute(classifier, tiny.TEXTS[:1], "decompx")
    assert len(made) == 11  # another model's text is another text


def test_a_model_of_one_layer_is_decomposed_too():
    classifier = tiny.classifier("bert", layers=1)
    for one in attribute(classifier, tiny.TEXTS, "decompx", level="token", per_layer=True):
        assert one.layers.shape[0] == 1 and (one.layers[0] == one.scores).all() and one.scores.all()
    for one in attribute(classifier, tiny.TEXTS, "decompx_classifier"):
        assert abs(one.completeness_gap) < 1e-5
