"""The learning rate follows the schedule that a run asks for."""

from __future__ import annotations

import pytest

from erlib.config import OptimiserSpec, RunSpec, term
from erlib.losses import Step, Weighted
from erlib.training.updates import make_update
from tests import tiny


def rates(**options):
    """The learning rate of each of four steps."""
    model = tiny.classifier("bert", head="agreement")
    spec = OptimiserSpec(lr=0.01, warmup=0.5, **options)
    update = make_update(RunSpec(None, optimiser=spec), model, 4)
    seen = []
    for number in range(4):
        step = Step(model, tiny.batch(model, ["a film", "dull"], labels=[1, 0]))
        update.apply(Weighted([term("task")]), step, number)
        seen.append(update.optimiser.param_groups[0]["lr"])
    return seen


def test_a_constant_rate_stays_and_a_linear_one_rises_and_falls():
    assert rates(schedule="constant") == [0.01] * 4
    assert rates() == pytest.approx([0, 0.005, 0.01, 0.005])


def test_an_unknown_schedule_is_refused():
    with pytest.raises(ValueError, match="unknown schedule 'constat'; did you mean 'constant'"):
        OptimiserSpec(schedule="constat")
