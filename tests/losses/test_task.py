"""The task loss is cross-entropy, whatever the head."""

from __future__ import annotations

from math import exp, log

import pytest

from erlib.losses import Step
from erlib.losses.task import TaskLoss
from tests import tiny


def loss(model, texts, **options):
    return TaskLoss().loss(Step(model, tiny.batch(model, texts, **options)))["task"].item()


def test_two_logits_give_the_mean_cross_entropy():
    model = tiny.classifier("bert").eval()
    logits = model.forward(tiny.inputs(model, ["dull", "a great film"])).logits.tolist()
    by_hand = [log(sum(map(exp, z))) - z[y] for z, y in zip(logits, [1, 0], strict=True)]
    assert loss(model, ["dull", "a great film"], labels=[1, 0]) == pytest.approx(
        sum(by_hand) / 2, rel=1e-5
    )


def test_one_logit_gives_the_binary_cross_entropy():
    model = tiny.classifier("distilbert", head="agreement", specials=False).eval()
    z = model.forward(tiny.inputs(model, ["dull"])).logits.item()
    assert loss(model, ["dull"], labels=[0]) == pytest.approx(log(1 + exp(z)), rel=1e-5)


def test_a_span_is_charged_for_start_and_end_and_never_for_padding():
    model = tiny.classifier("bert", task="span").eval()
    question = {
        "question": "which review",
        "context": "a great film , truly moving",
        "answers": [{"text": "great film", "answer_start": 2}],
    }
    longer = {**question, "context": question["context"] + " and funny and funny and funny"}
    alone = [loss(model, [q]) for q in (question, longer)]
    assert loss(model, [question, longer]) == pytest.approx(sum(alone) / 2, rel=1e-5)


def test_missing_labels_are_named():
    model = tiny.classifier("bert").eval()
    with pytest.raises(ValueError, match="needs labels"):
        loss(model, ["dull"])


def test_a_batch_whose_answers_are_all_cut_off_costs_nothing():
    model = tiny.classifier("bert", task="span").eval()
    question = {
        "question": "which review",
        "context": "a great film , truly moving and funny",
        "answers": [{"text": "funny", "answer_start": 32}],
    }
    assert loss(model, [question], max_length=16) == 0
