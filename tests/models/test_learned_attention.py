from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from erlib.config import DataSpec, OptimiserSpec, term
from erlib.losses import Step, Weighted
from erlib.models import load_classifier
from erlib.models.families import family_of
from erlib.models.layers import attention_scores, queries_keys
from erlib.models.learned_attention import EXPLAINERS, START, calibrate, entropy, explain
from erlib.training.rows import rows_of
from erlib.training.updates import PlainUpdate
from tests import tiny

WHOLE = ("ivra-softmax", "ivra-sparsemax", "smat")
LABELLED = [
    {"id": "0", "words": ["a", "great", "film"], "label": 1},
    {"id": "1", "words": ["the", "plot", "is", "dull"], "label": 0},
    {"id": "2", "words": ["the", "best"], "label": 1},
]


def ready(family="bert", explainer="ivra-sparsemax", *, uneven=True, **options):
    """A calibrated classifier; with `uneven`, coefficients that no symmetry hides a mistake of."""
    model = tiny.classifier(family, explainer=explainer, **options)
    calibrate(model, tiny.inputs(model))
    if uneven:
        generator = torch.Generator().manual_seed(1)
        for weight in model.explainer.parameters():
            weight.data *= 1 + 0.3 * torch.rand(weight.shape, generator=generator)
    return model


def explained(model, texts=None):
    inputs = tiny.inputs(model, texts)
    with torch.no_grad():
        return explain(model, model.forward(inputs), inputs["attention_mask"]), inputs


def project(z):
    """The nearest point of the simplex: sparsemax by its definition, the threshold by bisection."""
    low, high = z.max() - 1, z.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(z - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(z - low, 0)


def soften(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def by_the_equations(model, text):
    """r of one text by eq. 1 to 5, entry by entry."""
    inputs = tiny.inputs(model, [text])
    norm = soften if model.explainer.norm == "softmax" else project
    weights = {n: w.double().numpy() for n, w in model.explainer.coefficients().items()}
    states = model.forward(inputs).hidden_states
    n = inputs["input_ids"].shape[1]
    rows = []
    for layer, view in enumerate(model.layers):
        q, k = (x[0].double().detach().numpy() for x in queries_keys(view, states[layer]))
        stack = np.zeros((view.n_heads, n))
        for h in range(view.n_heads):
            q_norm = [norm(weights["omega_q"][layer, h] * q[h, i]) for i in range(n)]  # eq. 1
            k_norm = [norm(weights["omega_k"][layer, h] * k[h, i]) for i in range(n)]  # eq. 2
            for t in range(n):
                seeing = range(t, n) if view.causal else range(n)
                psi = np.mean([q_norm[i] @ k_norm[t] for i in seeing])  # eq. 4
                stack[h, t] = weights["lambda"][layer, h] * psi
        rows.append(norm(stack.ravel()).reshape(stack.shape).sum(axis=0))  # eq. 3
    stack = weights["eta"][:, None] * np.stack(rows)
    return norm(stack.ravel()).reshape(stack.shape).sum(axis=0), np.stack(rows)  # eq. 5


@pytest.mark.parametrize("explainer", EXPLAINERS)
@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_r_is_a_distribution_over_real_tokens_in_every_family(family, explainer):
    found, inputs = explained(ready(family, explainer))
    pads = inputs["attention_mask"] == 0
    assert pads.any() and (found.r[pads] == 0).all() and (found.r >= 0).all()
    torch.testing.assert_close(found.r.sum(dim=1), torch.ones(len(found.r)))
    n = inputs["attention_mask"].sum(dim=1)
    assert (found.r.amax(dim=1) > 1.05 / n)[n > 2].all()  # not flat
    if found.layers is not None:
        torch.testing.assert_close(found.layers.sum(dim=2), torch.ones(found.layers.shape[:2]))


@pytest.mark.parametrize("norm", ["softmax", "sparsemax"])
@pytest.mark.parametrize("family", ["bert", "electra", "gpt2", "llama"])
def test_ivra_is_its_equations_written_out(family, norm):
    model = ready(family, f"ivra-{norm}")
    model.model.double()
    for text in tiny.TEXTS:
        found, _ = explained(model, [text])
        r, layers = by_the_equations(model, text)
        np.testing.assert_allclose(found.r[0], r, atol=5e-6)
        np.testing.assert_allclose(found.layers[0], layers, atol=5e-6)


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert"])
def test_smat_begins_as_the_softmax_of_the_mean_attention_score(family):
    """Taken from the library's own attention: log A = S − a constant of the query's row."""
    model = ready(family, "smat", uneven=False)
    for text in tiny.TEXTS:
        found, inputs = explained(model, [text])
        with torch.no_grad():
            maps = torch.stack(model.forward(inputs).attentions)[:, 0]  # [layer, head, query, key]
        expected = maps.log().mean(dim=(0, 1, 2)).softmax(dim=-1)
        torch.testing.assert_close(found.r[0], expected)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_smat_weighs_heads_and_leaves_out_queries_that_cannot_see_the_token(family):
    model = ready(family, "smat")
    model.explainer.phi.data += torch.rand(2, 4, generator=torch.Generator().manual_seed(0))
    (text,) = tiny.TEXTS[:1]
    found, inputs = explained(model, [text])
    weights = project(model.explainer.phi.detach().double().numpy().ravel())
    n = inputs["input_ids"].shape[1]
    total, heads = np.zeros(n), iter(weights)
    with torch.no_grad():
        for view, h in zip(model.layers, model.forward(inputs).hidden_states, strict=False):
            for scores in attention_scores(view, h)[0].double().numpy():
                seen = [scores[(t if view.causal else 0) :, t].mean() for t in range(n)]
                total += next(heads) * np.array(seen)
    np.testing.assert_allclose(found.r[0], soften(total), atol=1e-6)
    assert (weights == 0).any()  # heads that are not chosen at all


@pytest.mark.parametrize("explainer", WHOLE)
@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_padding_changes_nothing(family, explainer):
    model = ready(family, explainer)
    model.model.double()
    together, _ = explained(model)
    for row, text in enumerate(tiny.TEXTS):
        alone, _ = explained(model, [text])
        n = alone.r.shape[1]
        torch.testing.assert_close(together.r[row, :n], alone.r[0], atol=1e-6, rtol=1e-5)
        if alone.layers is not None:
            torch.testing.assert_close(
                together.layers[row, :, :n], alone.layers[0], atol=1e-6, rtol=1e-5
            )


@pytest.mark.parametrize("family", ["roberta", "gpt2"])
@pytest.mark.parametrize("norm", ["softmax", "sparsemax"])
def test_a_new_module_starts_with_the_same_entropy_under_either_norm(norm, family):
    model = ready(family, f"ivra-{norm}", uneven=False)
    found, inputs = explained(model)
    wanted = START * inputs["attention_mask"].sum(dim=1).log().mean().item()
    for map_ in (found.r, *found.layers.unbind(dim=1)):
        nats = [-sum(p * math.log(p) for p in row.tolist() if p) for row in map_]
        assert np.mean(nats) == pytest.approx(wanted, rel=1e-3)

    was = model.explainer.coefficients()
    calibrate(model, tiny.inputs(model, ["dull dull dull"]))  # measured once
    for name, value in model.explainer.coefficients().items():
        assert torch.equal(value, was[name])
    assert not model.model.training


def test_on_packaged_texts_sparsemax_starts_with_some_exact_zeros():
    """And softmax with about its entropy, also on texts that the scales were not measured on."""
    rows = rows_of(DataSpec("movie_snippets", "packaged", 32), "train", 96)
    entropies = {}
    for norm in ("softmax", "sparsemax"):
        model = load_classifier("minilm", layers=2, explainer=f"ivra-{norm}").eval()
        texts = model.encode(rows, max_length=32)
        calibrate(model, model.batch(texts[:32]).inputs)
        inputs = model.batch(texts[32:]).inputs
        with torch.no_grad():
            r = explain(model, model.forward(inputs), inputs["attention_mask"]).r
        real = inputs["attention_mask"].bool()
        assert 20 < real.sum(dim=1).float().mean() < 30
        zeros = (r[real] == 0).float().mean().item()
        assert 0.1 < zeros < 0.4 if norm == "sparsemax" else zeros == 0
        entropies[norm] = entropy(r).mean().item()
    assert entropies["softmax"] == pytest.approx(entropies["sparsemax"], rel=0.2)


@pytest.mark.parametrize("explainer", [*WHOLE, "ivra-softmax-head"])
def test_an_explainer_is_saved_and_comes_back_with_its_classifier(explainer, tmp_path):
    model = ready("bert", explainer, num_labels=3)
    before, inputs = explained(model)
    model.save_pretrained(tmp_path)
    again = load_classifier(tmp_path)
    after, _ = explained(again)
    assert torch.equal(before.r, after.r) and again.explainer.name == explainer
    assert torch.equal(model.forward(inputs).logits, again.forward(inputs).logits)
    mine, theirs = ({n for n, _ in m.explainer.named_parameters()} for m in (model, again))
    assert mine == theirs


def test_a_classifier_without_an_explainer_says_so_and_predicts_the_same_with_one(tmp_path):
    plain, beside = tiny.classifier("bert"), ready("bert")
    inputs = tiny.inputs(plain)
    assert torch.equal(plain.forward(inputs).logits, beside.forward(inputs).logits)
    assert plain.explainer is None and plain.explainer_parameters() == []
    with pytest.raises(ValueError, match="no learned attention.*explainer=.*ivra-sparsemax"):
        explain(plain, plain.forward(inputs), inputs["attention_mask"])
    plain.save_pretrained(tmp_path)
    assert load_classifier(tmp_path).explainer is None
    added = load_classifier(tmp_path, explainer="ivra-softmax")  # to a classifier that had none
    assert (added.explainer.omega_q == 1).all() and not added.explainer.calibrated


def test_an_unknown_explainer_is_refused_and_the_bilstm_has_none():
    with pytest.raises(ValueError, match="unknown explainer 'ivra-sparse'.*'ivra-sparsemax'"):
        tiny.classifier("bert", explainer="ivra-sparse")
    with pytest.raises(ValueError, match="no task='span', layers=, explainer="):
        load_classifier("jwa", explainer="smat")


def trained(model, steps=5, **options):
    update = PlainUpdate(model, OptimiserSpec(lr=1e-2, schedule="constant"), 100, **options)
    objective = Weighted((term("task"), term("comprehensiveness")))
    model.train()
    for number in range(steps):
        update.apply(objective, Step(model, tiny.batch(model, LABELLED)), number)
    return model.eval()


@pytest.mark.parametrize(
    ("level", "moves"),
    [("feature", {"omega_q", "omega_k"}), ("head", {"lambda_"}), ("layer", {"eta"})],
)
def test_an_ablated_module_selects_at_one_level_and_freezes_the_others(level, moves):
    model = ready("bert", f"ivra-softmax-{level}", uneven=False)
    was = {name: tensor.clone() for name, tensor in model.explainer.state_dict().items()}
    trained(model)
    changed = {n for n, t in model.explainer.state_dict().items() if not torch.equal(t, was[n])}
    assert changed == moves == {n for n, _ in model.explainer.named_parameters()}


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_a_frozen_base_leaves_training_to_head_and_explainer(family):
    model = ready(family, uneven=False)
    model.freeze(len(model.layers))
    was = {name: tensor.clone() for name, tensor in model.model.state_dict().items()}
    trained(model, explainer_lr=0.05)
    changed = {n for n, t in model.model.state_dict().items() if not torch.equal(t, was[n])}
    head = {"bert": ("bert.pooler.", "classifier."), "llama": ("score.",)}[family]
    assert all(name.startswith((*head, "explainer.")) for name in changed)
    for part in (*head, "explainer.omega_q", "explainer.lambda_", "explainer.eta"):
        assert any(name.startswith(part) for name in changed), part


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_layers_above_the_frozen_ones_train(family):
    model = ready(family, uneven=False)
    model.freeze(1)
    was = [[p.clone() for p in layer.parameters()] for layer in stack_of(model)]
    embedded = model.model.get_input_embeddings().weight.clone()
    trained(model)
    same = [
        all(torch.equal(p, q) for p, q in zip(layer.parameters(), before, strict=True))
        for layer, before in zip(stack_of(model), was, strict=True)
    ]
    assert same == [True] + [False] * (len(was) - 1) and len(was) > 1
    assert torch.equal(model.model.get_input_embeddings().weight, embedded)
    with pytest.raises(ValueError, match=f"has {len(was)} layers: cannot freeze 99"):
        model.freeze(99)


def stack_of(model):
    return model.model.base_model.get_submodule(family_of(model.family).layers)


def test_a_frozen_span_model_trains_too():
    model = tiny.classifier("bert", task="span", explainer="ivra-softmax")
    model.freeze(len(model.layers))
    assert model.encoder_parameters() == [] and len(model.head_parameters()) == 2


def test_the_explainer_has_a_learning_rate_of_its_own():
    model = ready("bert", uneven=False)
    moved = trained(model, steps=1, explainer_lr=0.5).explainer
    assert (moved.eta - 1).abs().max().item() == pytest.approx(0.5, rel=1e-2)  # Adam's first step


def test_entropy_is_log_n_for_a_flat_map_and_0_for_a_single_token():
    maps = torch.tensor([[0.25] * 4, [0.0, 1.0, 0.0, 0.0]])
    torch.testing.assert_close(entropy(maps), torch.tensor([math.log(4), 0.0]))
