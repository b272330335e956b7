"""The constrained strategy is gradient descent in the weights and ascent in one multiplier."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pandas as pd
import pytest
import torch

from erlib.config import CheckpointRule, OptimiserSpec, term, update
from erlib.losses import Step, Weighted
from erlib.models import load_classifier
from erlib.training import loop
from erlib.training.identity import run_hash
from erlib.training.runs import run
from erlib.training.updates import ConstrainedUpdate, PlainDescent, PlainUpdate, linear_schedule
from tests import tiny

OBJECTIVE = Weighted((term("task"), term("explanation", 0.0, guide="attention")))
SPEC = OptimiserSpec(lr=1e-3, warmup=0.2)
ROWS = [
    {"id": "0", "words": ["a", "great", "film"], "label": 1, "rationale": [0, 1, 0]},
    {"id": "1", "words": ["the", "plot", "is", "dull"], "label": 0, "rationale": [0, 0, 0, 1]},
]


def test_every_step_is_the_lagrangian_s_written_out_by_hand():
    """Weights by a plain update of L + α (L_expl − b) with α put in as a number, α by RMSprop's
    own formula: v ← .99 v + .01 g², α ← α + lr g / (√v + 1e-8), g = L_expl − b."""
    bound, total = 0.05, 5
    model = tiny.classifier("bert").eval()
    twin = copy.deepcopy(model)
    constrained = ConstrainedUpdate(model, SPEC, total, term="explanation", bound=bound, lr=0.5)
    plain = PlainUpdate(twin, SPEC, total)
    alpha, v = 1.0, 0.0
    for number in range(total):
        alpha = max(alpha, 0.0)
        losses = OBJECTIVE.loss(Step(twin, tiny.batch(twin, ROWS)))
        plain.descend(losses["task"] + alpha * (losses["explanation"] - bound), number)
        found = constrained.apply(OBJECTIVE, Step(model, tiny.batch(model, ROWS)), number)
        assert found["multiplier"].item() == pytest.approx(alpha, rel=1e-5)
        g = losses["explanation"].item() - bound
        v = 0.99 * v + 0.01 * g * g
        alpha += 0.5 * linear_schedule(number, total, 0.2) * g / (v**0.5 + 1e-8)
    for a, b in zip(model.model.parameters(), twin.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)
    assert alpha > 2  # the constraint was not met, so that its price has risen


def test_the_multiplier_falls_to_zero_while_the_constraint_is_met():
    model = tiny.classifier("bert").eval()
    slack = ConstrainedUpdate(model, SPEC, 50, term="explanation", bound=10.0, lr=0.5)
    for number in range(20):
        found = slack.apply(OBJECTIVE, Step(model, tiny.batch(model, ROWS)), number)
    assert found["multiplier"].item() == 0.0
    assert found["loss"].item() == pytest.approx(found["task"].item())


@pytest.fixture
def constrained(spec):
    rule = CheckpointRule("dev_task", bound=("dev_explanation", 1.0), patience_unmet=10)
    return replace(
        spec,
        objective=(term("task"), term("explanation", 0.0, guide="attention")),
        optimiser=replace(spec.optimiser, checkpoint=rule),
        update=update("constrained", term="explanation", bound=0.01, lr=0.5),
    )


def test_a_constrained_run_taken_up_after_an_epoch_ends_like_an_unbroken_one(
    constrained, tmp_path, monkeypatch
):
    run([constrained], store=tmp_path / "whole")
    evaluate_epoch, epochs = loop.evaluate_epoch, []

    def interrupted(*arguments):
        epochs.append(arguments)
        if len(epochs) == 2:
            raise KeyboardInterrupt
        evaluate_epoch(*arguments)

    monkeypatch.setattr(loop, "evaluate_epoch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run([constrained], store=tmp_path / "broken")
    run([constrained], store=tmp_path / "broken")
    broken, whole = (tmp_path / s / "runs" / run_hash(constrained) for s in ("broken", "whole"))
    for file in ("metrics.json", "history.csv", "model.safetensors"):
        assert (broken / file).read_bytes() == (whole / file).read_bytes(), file
    prices = pd.read_csv(whole / "history.csv")["train_multiplier"]
    assert prices.is_monotonic_increasing and prices.iloc[0] > 1
    assert json.loads((broken / "provenance.json").read_text())["resumed"]


def test_a_run_begins_from_the_weights_of_the_run_it_starts_from(spec, tmp_path):
    still = replace(spec, start=spec, optimiser=replace(spec.optimiser, lr=0.0, epochs=1))
    table = run([still], store=tmp_path / "store")  # trains the first run, too
    first = run([spec], store=tmp_path / "store").iloc[0]
    assert table.iloc[0]["dev_loss"] == pytest.approx(first["dev_loss"], rel=1e-6)
    assert run_hash(still) != run_hash(replace(still, start=None))
    assert run_hash(still) != run_hash(replace(still, start=spec.with_seed(9)))


def test_an_unknown_strategy_is_refused_with_the_known_ones(spec):
    with pytest.raises(ValueError, match="'constraind'; did you mean 'constrained'"):
        run_hash(replace(spec, update=update("constraind")))


def test_a_run_that_starts_without_an_explainer_gets_a_calibrated_one_and_keeps_a_trained_one(
    spec, tmp_path
):
    plain = replace(spec, objective=(term("task"),))
    with_module = replace(
        plain,
        start=plain,
        model=replace(spec.model, explainer="ivra-sparsemax"),
        objective=(term("task"), term("consistency")),
        update=update("plain", explainer_lr=0.05),
    )
    again = replace(with_module, start=with_module, optimiser=OptimiserSpec(lr=0.0, epochs=1))
    again = replace(again, update=update("plain"))
    back = replace(again, model=spec.model, objective=(term("task"),))  # leaves it behind
    other = replace(again, model=replace(spec.model, explainer="ivra-softmax"))
    run([again, back, other], store=tmp_path / "store")
    first, second, third, fourth = (
        load_classifier(str(tmp_path / "store" / "runs" / run_hash(s))).explainer
        for s in (with_module, again, back, other)
    )
    assert first.calibrated and (first.eta != 1).any()
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, second.state_dict()[name]), name
    assert third is None
    assert fourth.calibrated and (fourth.eta == 1).all()  # another norm begins anew


def test_a_start_of_another_model_is_refused(spec, tmp_path):
    other = replace(
        spec, start=spec, model=replace(spec.model, name=str(tiny.directory("electra")))
    )
    with pytest.warns(UserWarning, match="is of another model"):
        run([other], store=tmp_path / "store")


def test_the_step_schedule_multiplies_every_second_epoch():
    spec = OptimiserSpec(lr=1.0, epochs=6)
    made = PlainUpdate(tiny.classifier("bert"), spec, total_steps=18, decay=0.5)
    assert [made.factor(number) for number in range(0, 18, 3)] == [1, 1, 0.5, 0.5, 0.25, 0.25]
    assert made.factor(5) == 1 and made.factor(6) == 0.5


def test_plain_descent_follows_the_gradient_and_has_no_state(spec, tmp_path):
    model, objective = tiny.classifier("bert").eval(), Weighted((term("task"),))
    step = Step(model, tiny.batch(model, ROWS))
    weight = model.model.classifier.weight
    (slope,) = torch.autograd.grad(objective.loss(step)["task"], weight)
    expected = weight.detach() - 0.1 * slope
    made = PlainDescent(model, OptimiserSpec(lr=0.1, schedule="constant"), 10)
    made.apply(objective, Step(model, tiny.batch(model, ROWS)), 0)
    torch.testing.assert_close(weight.detach(), expected)
    assert made.tensors() == {}
    run([replace(spec, update=update("sgd"))], store=tmp_path / "store")  # and saves its epochs
