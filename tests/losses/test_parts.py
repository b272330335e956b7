"""A batch in parts has the losses and gradients of the whole; what is no sum over texts stops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from erlib.config import OptimiserSpec, term
from erlib.losses import OBJECTIVES, Step, Weighted
from erlib.models.learned_attention import calibrate
from erlib.training.updates import ConstrainedUpdate, PlainUpdate, summed
from tests import tiny

TEXTS = [
    {"id": str(i), "words": words, "label": i % 2, "rationale": bits}
    for i, (words, bits) in enumerate(
        [
            ("a great film , truly moving and funny", [0, 1, 0, 0, 0, 1, 0, 1]),
            ("the plot is dull", [0, 0, 0, 1]),
            ("not a bad film but the ending is dull", [0] * 9),
            ("which review is best", [0, 0, 0, 1]),
            ("i liked the music", [0, 1, 0, 0]),
        ]
    )
]
# every registered loss, as its paper asks for it, on what it needs
TERMS = {
    "task": [{}],
    "task_on_probabilities": [{}],
    "explanation": [{"guide": g} for g in ("attention", "rollout", "input_x_gradient")],
    "input_gradient": [{}],
    "virtual_adversarial": [{}, {"project": True}],
    "guided": [{"points": 2}, {"guide": "saliency", "aggregation": "mean"}],
    "salience": [{"kl": "paper"}, {"kl": "second_softmax"}],
    "conicity": [{}, {"mask": False}],
    "tying": [{}, {"squared": True}, {"mask": False}],
    "comprehensiveness": [{}],
    "sufficiency": [{}, {"form": "absolute"}, {"form": "kl"}],
    "simulation": [{}],
    "entropy": [{}],
}
REFUSED = {
    "salience": {"kl": "reference"},
    "conicity": {"axis": "batch"},
    "consistency": {},
}
EACH = [(name, options) for name, every in TERMS.items() for options in every]


def test_every_loss_has_its_place_here():
    assert set(TERMS) | set(REFUSED) == set(OBJECTIVES)


@pytest.fixture(scope="module")
def model():
    """Without dropout, whose masks would be drawn in another order."""
    made = tiny.classifier("bert", head="er", explainer="ivra-softmax")
    calibrate(made, tiny.inputs(made))
    for module in made.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return made.train()


def batch_of(model):
    batch = tiny.batch(model, TEXTS)
    shares = torch.rand(batch.special.shape, generator=torch.Generator().manual_seed(1))
    shares = shares * batch.inputs["attention_mask"]
    batch.explanation = shares / shares.sum(dim=1, keepdim=True)
    return batch


def losses_and_slopes(model, terms, at_once):
    objective = Weighted(terms)
    objective.fit(model.encode(TEXTS))
    torch.manual_seed(3)
    model.model.zero_grad(set_to_none=True)
    losses = summed(Step(model, batch_of(model), at_once), objective.loss)
    slopes = {n: p.grad.clone() for n, p in model.model.named_parameters() if p.grad is not None}
    return {name: value.item() for name, value in losses.items()}, slopes


@pytest.mark.parametrize(("name", "options"), EACH, ids=[f"{n} {o}" for n, o in EACH])
@pytest.mark.parametrize("at_once", [2, 1])
def test_parts_add_up_to_the_batch(model, name, options, at_once):
    terms = [term("task"), term(name, 0.7, **options)] if "task" not in name else [term(name)]
    whole, slopes = losses_and_slopes(model, terms, None)
    parts, others = losses_and_slopes(model, terms, at_once)
    assert parts == pytest.approx(whole, rel=1e-5, abs=1e-6) and slopes.keys() == others.keys()
    largest = max(slope.abs().max().item() for slope in slopes.values())
    for weight, slope in slopes.items():
        np.testing.assert_allclose(others[weight], slope, rtol=1e-5, atol=1e-5 * largest)


def test_answers_of_spans_count_as_often_as_they_were_not_cut_off():
    model = tiny.classifier("bert", task="span").train(False)
    rows = [
        {"id": str(i), "question": "which ?", "context": "a great film " * n + "dull .",
         "answers": [{"text": "dull", "answer_start": 13 * n}]}
        for i, n in enumerate((1, 2, 9, 3))
    ]  # fmt: skip
    batch = tiny.batch(model, rows, max_length=20)
    assert (batch.labels[:, 0] < 0).sum() == 1
    whole, parts = (
        summed(Step(model, batch, n), Weighted([term("task")]).loss)["loss"] for n in (None, 2)
    )
    torch.testing.assert_close(parts, whole)


@pytest.mark.parametrize("name", REFUSED)
def test_a_loss_that_compares_the_texts_of_a_batch_is_not_split(model, name):
    with pytest.raises(ValueError, match="compares the texts of a batch.* take a smaller batch"):
        losses_and_slopes(model, [term("task"), term(name, **REFUSED[name])], 2)


@pytest.mark.parametrize("strategy", [PlainUpdate, ConstrainedUpdate])
def test_a_step_in_parts_is_the_step_of_the_batch(strategy):
    """Seen in the logits: a key's bias has no gradient but noise, which AdamW makes large."""
    logits = []
    for at_once in (None, 2):
        model = tiny.classifier("bert", head="er").train(False)
        terms = [term("task"), term("explanation", 0.0, guide="attention")]
        constrained = strategy is ConstrainedUpdate
        options = {"term": "explanation", "bound": 0.03, "lr": 0.1} if constrained else {}
        update = strategy(model, OptimiserSpec(lr=1e-3, warmup=0.0, clip=1.0), 4, **options)
        for number in range(3):
            losses = update.apply(
                Weighted(terms), Step(model, tiny.batch(model, TEXTS), at_once), number
            )
        seen = model.forward(tiny.inputs(model)).logits
        logits.append([seen, *losses.values(), update.tensors().get("multiplier", seen)])
    for whole, parts in zip(*logits, strict=True):
        torch.testing.assert_close(parts, whole, rtol=1e-4, atol=1e-5)
