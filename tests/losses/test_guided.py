"""Explanation guided training is that of REGEX §3.3, token by token, and runs no pass twice."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
from captum.attr import IntegratedGradients

from erlib.attributions import attribute_encoded
from erlib.config import term
from erlib.losses import Step, Weighted, build
from erlib.losses.guided import GUIDES
from tests import tiny
from tests.losses.finite import agrees

TEXTS = ["a great film , truly moving", "dull", "the plot is bad and the acting is unfunny ."]
LABELS = [1, 0, 0]
REGEX = (
    term("task"),
    term("input_gradient", 0.01),
    term("virtual_adversarial", 0.5),
    term("guided", 0.01, points=3),
)


def encoded(model):
    return model.encode(TEXTS, labels=LABELS)


def step(model):
    return Step(model, model.batch(encoded(model)))


@pytest.fixture
def model():
    made = tiny.classifier("bert").eval()
    made.model.double()
    return made


def by_hand(model, texts, scores, percent):
    """Eqs. 6 and 7 for one text at a time, in plain Python."""
    total = [0.0, 0.0]
    for text, given in zip(texts, scores, strict=True):
        words = [t for t, special in enumerate(text.special) if not special]
        guide = {t: max(given[t] / sum(given[w] for w in words), 1e-8) for t in words}
        lowest = sorted(words, key=lambda t, given=given: given[t])
        lowest = lowest[: max(1, math.ceil(percent * len(words) / 100))]
        masked = list(text.input_ids)
        for t in lowest:
            masked[t] = model.tokenizer.mask_token_id
        for i, ids in enumerate((text.input_ids, masked)):
            inputs = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids))}
            with torch.no_grad():
                row = model.forward(inputs).attentions[-1][0, :, 0].mean(dim=0).tolist()
            att = {t: row[t] / sum(row[w] for w in words) for t in words}
            total[i] += sum(att[t] * math.log(att[t] / guide[t]) for t in words)
    return [value / len(texts) for value in total]


@pytest.mark.parametrize("aggregation", ["l2", "mean"])
@pytest.mark.parametrize("guide", GUIDES)
def test_both_terms_equal_the_equations_for_every_guide(model, guide, aggregation):
    texts = encoded(model)
    variant = GUIDES[guide][aggregation]
    scores = attribute_encoded(model, texts, guide, variant=variant, target="gold", level="token")
    expected = by_hand(model, texts, [s.scores.tolist() for s in scores], 30)
    losses = build(term("guided", guide=guide, aggregation=aggregation, percent=30)).loss(
        step(model)
    )
    assert losses["guided"].item() == pytest.approx(expected[0], rel=1e-6)
    assert losses["guided_masked"].item() == pytest.approx(expected[1], rel=1e-6)
    assert expected[0] != pytest.approx(expected[1], rel=1e-3)


def test_the_number_of_points_is_that_of_captum_s_integrated_gradients(model):
    text = encoded(model)[0]
    batch = model.batch([text])
    x = model.forward(batch.inputs).embeddings.detach()

    def gold(embeddings):
        inputs = {k: v.expand(len(embeddings), -1) for k, v in batch.inputs.items()}
        return model.forward(inputs, embeddings=embeddings).logits[:, 1]

    for points in (4, 10):
        expected = IntegratedGradients(gold).attribute(x, n_steps=points).norm(dim=-1)[0]
        found = build(term("guided", points=points)).explain(model, batch)[0]
        # Captum's weights are in single precision
        assert found.tolist() == pytest.approx(expected.tolist(), rel=5e-8)


@pytest.mark.parametrize("weight", ["1.attention.self.query.weight", "word_embeddings.weight"])
@pytest.mark.parametrize("name", ["guided", "guided_masked"])
def test_the_gradient_agrees_with_finite_differences_while_the_guide_is_held_fixed(
    model, name, weight
):
    loss = build(term("guided", refreshed="epoch", points=5, percent=40))
    loss.refresh(model, encoded(model))  # then nothing is explained again
    agrees(model, lambda: loss.loss(step(model))[name], weight)


def test_no_gradient_flows_into_the_guide(model):
    """With the guide per batch, the gradient is that with the same guide as a constant."""
    gradients = []
    for refreshed in ("batch", "epoch"):
        loss = build(term("guided", refreshed=refreshed, points=5))
        loss.refresh(model, encoded(model))
        value = loss.loss(step(model))["guided"]
        gradients.append(
            torch.autograd.grad(value, list(model.model.parameters()), allow_unused=True)
        )
    for a, b in zip(*gradients, strict=True):
        assert (a is None) == (b is None)
        assert a is None or torch.allclose(a, b, rtol=0, atol=1e-12)
    assert all(p.requires_grad for p in model.model.parameters())


def test_a_guide_per_epoch_is_that_of_the_weights_the_epoch_began_with(model):
    loss = build(term("guided", refreshed="epoch", points=3))
    loss.refresh(model, encoded(model))
    before = loss.scores(step(model)).clone()
    with torch.no_grad():
        for p in model.model.parameters():
            p.add_(0.1 * torch.ones_like(p))
    assert torch.equal(loss.scores(step(model)), before)
    now = loss.explain(model, step(model).batch)
    assert not torch.allclose(now, before)
    loss.refresh(model, encoded(model))
    seen = step(model).mask.bool()
    assert torch.allclose(loss.scores(step(model))[seen], now[seen], atol=1e-12)


def seen_inputs(model, monkeypatch):
    """Everything that `forward` is asked, with dropout or without, as comparable values.

    Embeddings that are not given are looked up, so that ids and their own embeddings are one input.
    """
    asked, forward = [], model.forward

    def watched(inputs, *, embeddings=None, entry=None, gate=None, maps=True):
        x = embeddings
        if x is None and entry is None:
            x = model.model.get_input_embeddings()(inputs["input_ids"])
        parts = [inputs["input_ids"], x, entry]
        values = [None if p is None else p.detach().numpy().tobytes() for p in parts]
        asked.append((model.model.training, *values))
        return forward(inputs, embeddings=embeddings, entry=entry, gate=gate)

    monkeypatch.setattr(model, "forward", watched)
    return asked


@pytest.mark.parametrize("guide", GUIDES)
def test_a_step_that_makes_its_own_guide_runs_no_pass_twice_either(guide, monkeypatch):
    model = tiny.classifier("bert").train()
    asked = seen_inputs(model, monkeypatch)
    Weighted([*REGEX[:3], term("guided", 0.01, guide=guide, points=3)]).loss(step(model))
    # DeepLIFT's pass with its rules is another function than the one that finds x
    assert max(Counter(asked).values()) == (2 if guide == "deeplift" else 1)
    assert sum(training for training, *_ in asked) == 5  # the guide is made without dropout


def test_one_step_never_runs_a_forward_pass_twice_for_the_same_input(monkeypatch):
    model = tiny.classifier("bert").train()
    terms = Weighted([*REGEX[:3], term("guided", 0.01, points=3, refreshed="epoch")])
    terms.refresh(model, encoded(model))
    asked = seen_inputs(model, monkeypatch)
    losses = terms.loss(step(model))
    # x once for all four terms, x̃ once, two ascents and their end
    assert len(asked) == 5 and max(Counter(asked).values()) == 1
    parts = {"task": 1, "input_gradient": 0.01, "virtual_adversarial": 0.5,
             "guided": 0.01, "guided_masked": 0.01}  # fmt: skip
    total = sum(weight * losses[name].item() for name, weight in parts.items())
    assert losses["loss"].item() == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("chosen", REGEX[1:], ids=lambda t: t.name)
def test_each_term_is_usable_alone(chosen):
    model = tiny.classifier("bert").train()
    losses = Weighted([chosen]).loss(step(model))
    assert all(t.name not in losses for t in REGEX if t != chosen)
    losses["loss"].backward()
    gradient = next(
        p.grad
        for n, p in model.model.named_parameters()
        if n.endswith("0.attention.self.query.weight")
    )
    assert torch.isfinite(gradient).all() and gradient.abs().max() > 0


def test_every_third_token_is_masked_but_never_a_special(model):
    ids = step(model).batch.inputs["input_ids"]
    seen = []
    forward = model.forward
    model.forward = lambda inputs, **k: seen.append(inputs["input_ids"]) or forward(inputs, **k)
    build(term("guided", guide="saliency", percent=33)).loss(step(model))
    masked = seen[-1] == model.tokenizer.mask_token_id
    words = [len(t.special) - sum(t.special) for t in encoded(model)]
    assert masked.sum(dim=1).tolist() == [math.ceil(0.33 * n) for n in words]
    assert not (masked & step(model).batch.special).any()
    assert torch.equal(seen[-1][~masked], ids[~masked])


def test_unknown_choices_and_models_without_a_mask_are_refused():
    with pytest.raises(ValueError, match="unknown guide 'ig'; .*integrated_gradients"):
        build(term("guided", guide="ig"))
    with pytest.raises(ValueError, match="unknown aggregation 'l1'"):
        build(term("guided", aggregation="l1"))
    with pytest.raises(ValueError, match="unknown time to refresh the guide 'step'"):
        build(term("guided", refreshed="step"))
    with pytest.raises(ValueError, match="has no mask token"):
        build(term("guided", guide="saliency")).loss(step(tiny.classifier("gpt2")))
