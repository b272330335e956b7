"""The robustness terms are those of REGEX §3.2, and their gradients are true."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from erlib.config import term
from erlib.losses import Step, Weighted, build
from erlib.losses.robustness import VirtualAdversarial, kl
from tests import tiny
from tests.losses.finite import agrees

WEIGHTS = ("1.attention.self.query.weight", "embeddings.word_embeddings.weight")


def step(model, texts=tiny.TEXTS):
    labels = [i % 2 for i in range(len(texts))]
    return Step(model, tiny.batch(model, texts, labels=labels))


@pytest.fixture
def model():
    made = tiny.classifier("bert").eval()
    made.model.double()
    return made


def test_the_input_gradient_is_one_norm_per_text_found_by_finite_differences(model):
    value = build(term("input_gradient")).loss(step(model))["input_gradient"].item()
    norms = []
    for i, text in enumerate(tiny.TEXTS):  # each alone: no padding, no neighbours
        inputs = tiny.inputs(model, [text])
        with torch.no_grad():
            x = model.forward(inputs).embeddings
            squares = 0.0
            for place in range(x.numel()):
                losses = []
                for h in (1e-5, -1e-5):
                    moved = x.clone()
                    moved.view(-1)[place] += h
                    logits = model.forward(inputs, embeddings=moved).logits
                    losses.append(cross_entropy(logits, torch.tensor([i % 2])).item())
                squares += ((losses[0] - losses[1]) / 2e-5) ** 2
        norms.append(math.sqrt(squares))
    theta = math.sqrt(sum(float((p.detach() ** 2).sum()) for p in model.model.parameters()))
    assert value == pytest.approx(sum(norms) / 3 + theta, rel=1e-7)
    assert min(norms) > 1e-3


@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_second_derivative_of_the_input_gradient_agrees_with_finite_differences(model, weight):
    agrees(model, lambda: build(term("input_gradient")).loss(step(model))["input_gradient"], weight)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_gradient_of_the_adversarial_term_agrees_with_finite_differences(model, weight):
    """δ and the left sides of both divergences are held fixed, which no difference would do."""
    given, made = step(model), build(term("virtual_adversarial"))
    torch.manual_seed(0)
    delta = made.perturbation(given)
    with torch.no_grad():
        clean = given.forward()
        p0 = clean.logits
        q0 = model.forward(given.batch.inputs, entry=clean.entry + delta).logits

    def fixed():
        now = model.forward(given.batch.inputs)
        moved = model.forward(given.batch.inputs, entry=now.entry + delta)
        return (kl(p0, moved.logits) + kl(q0, now.logits)).mean()

    torch.manual_seed(0)
    value = made.loss(given)["virtual_adversarial"]
    assert value.item() == pytest.approx(fixed().item(), rel=1e-9)
    agrees(model, fixed, weight, analytic=value)


def test_the_divergence_is_that_of_the_class_probabilities():
    p, q = torch.tensor([[0.2, -1.0, 0.5]]), torch.tensor([[1.0, 0.0, 0.0]])
    a, b = p.softmax(-1)[0].tolist(), q.softmax(-1)[0].tolist()
    expected = sum(x * math.log(x / y) for x, y in zip(a, b, strict=True))
    assert kl(p, q).item() == pytest.approx(expected, rel=1e-5)
    one, two = torch.tensor([[0.7]]), torch.tensor([[0.0, 0.7]])
    assert kl(one, -one).item() == pytest.approx(kl(two, -two).item(), rel=1e-5)


def divergence(given, delta):
    clean = given.forward()
    with torch.no_grad():
        moved = given.classifier.forward(given.batch.inputs, entry=clean.entry + delta).logits
    return kl(clean.logits.detach(), moved).mean().item()


def test_the_perturbation_raises_the_divergence_more_than_random_ones_of_the_same_norm(model):
    given = step(model)
    torch.manual_seed(1)
    found = VirtualAdversarial(eta=10.0, ascents=3).perturbation(given)
    raised, size = divergence(given, found), found.norm(dim=-1, keepdim=True)
    for _ in range(20):
        noise = torch.randn_like(found)
        assert divergence(given, noise / noise.norm(dim=-1, keepdim=True) * size) < raised


def test_the_paper_s_small_steps_also_climb_from_wherever_they_start(model):
    given = step(model)
    for seed in range(10):
        torch.manual_seed(seed)
        found = VirtualAdversarial().perturbation(given)
        torch.manual_seed(seed)
        start = torch.randn_like(found)
        at_start = start / start.norm(dim=-1, keepdim=True) * found.norm(dim=-1, keepdim=True)
        assert divergence(given, found) > divergence(given, at_start)


def test_the_perturbation_ends_at_one_as_in_smart_or_in_the_paper_s_ball(model):
    given = step(model)
    largest = VirtualAdversarial().perturbation(given).abs().amax(dim=-1)
    assert (largest < 1).all() and (largest > 0.99).all()
    assert VirtualAdversarial(project=True).perturbation(given).abs().max() <= 1e-5


def test_padding_leaves_a_text_s_input_gradient_as_it_is(model):
    long = f"{tiny.TEXTS[0]} {tiny.TEXTS[2]}"

    def value(texts, labels):
        given = Step(model, tiny.batch(model, texts, labels=labels))
        return build(term("input_gradient")).loss(given)["input_gradient"].item()

    alone = [value([tiny.TEXTS[0]], [0]), value([long], [1])]
    assert value([tiny.TEXTS[0], long], [0, 1]) == pytest.approx(sum(alone) / 2, rel=1e-10)


def test_the_terms_are_left_out_on_held_out_texts():
    model = tiny.classifier("bert")
    terms = Weighted([term("task"), term("input_gradient", 0.01), term("virtual_adversarial", 0.5)])
    assert set(terms.loss(step(model.train()))) == {
        "task", "input_gradient", "virtual_adversarial", "loss",
    }  # fmt: skip
    assert set(terms.loss(step(model.eval()))) == {"task", "loss"}
