from __future__ import annotations

import math

import pytest

from erlib.metrics import faithfulness, plausibility, task
from erlib.metrics.directions import METRICS, average_relative_gain, metric


def test_what_the_papers_want_low_is_declared_low():
    low = {name for name, m in METRICS.items() if m.higher_is_better is False}
    assert low == {
        "ivra_sufficiency", "decision_flip", "attack_success_rate", "normalised_aopc_last",
    }  # fmt: skip


def test_every_plausibility_and_task_metric_is_declared_under_its_own_name():
    assert set(plausibility.METRICS) <= set(METRICS)
    for name in ("f1_macro", "f1_binary", "accuracy", "span_exact_match", "span_f1"):
        assert hasattr(task, name) and metric(name).higher_is_better
    assert hasattr(faithfulness, "important_share") and "important_share" in METRICS


def test_ranges_are_in_order():
    assert all(m.low < m.high for m in METRICS.values())


def test_an_unknown_metric_names_its_neighbour():
    with pytest.raises(ValueError, match="unknown metric 'kendal'; did you mean 'kendall'"):
        metric("kendal")


def test_arg_is_relative_to_training_for_the_criterion_alone():
    gain = average_relative_gain(
        "simulatability", {"imdb": 0.8, "snli": 0.5}, {"imdb": 0.6, "snli": 0.55}
    )
    assert gain.relative == pytest.approx({"imdb": -25.0, "snli": 10.0})
    assert gain.arg == pytest.approx(-7.5)
    assert gain.difference == pytest.approx({"imdb": -0.2, "snli": 0.05})


def test_sufficiency_gains_when_it_falls_and_a_negative_base_keeps_the_sign():
    assert average_relative_gain("ivra_sufficiency", {"t": 0.2}, {"t": 0.1}).arg == pytest.approx(
        50
    )
    assert average_relative_gain("consistency", {"t": -0.2}, {"t": 0.1}).arg == pytest.approx(150)


def test_a_gain_over_nothing_is_not_a_number_but_its_difference_is():
    gain = average_relative_gain("consistency", {"t": 0.0}, {"t": 0.1})
    assert math.isnan(gain.arg) and gain.difference == {"t": 0.1}


def test_gains_need_a_direction_and_the_same_tasks():
    with pytest.raises(ValueError, match="no better direction"):
        average_relative_gain("variability", {"t": 1.0}, {"t": 1.0})
    with pytest.raises(ValueError, match="must be the same"):
        average_relative_gain("consistency", {"t": 1.0}, {"u": 1.0})
