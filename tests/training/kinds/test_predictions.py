"""Predictions are made in evaluation mode unless dropout is asked for; how they are scored."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from erlib.config import DataSpec, EvalSpec
from erlib.training.evaluations import Evaluation, kind
from erlib.training.kinds.predictions import chance_p, task_scores
from erlib.training.rows import rows_of
from tests import corpus, tiny


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    corpus.write(tmp_path / "data")
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path / "data"))


def predicted(model, protocol=None):
    spec = EvalSpec(None, DataSpec("movies", "local", 32), "test", "predictions", 8,
                    protocol=protocol)  # fmt: skip
    rows = rows_of(spec.data, spec.split, spec.rows)
    return kind("predictions").per_text(Evaluation(spec, rows, lambda: model))


def test_dropout_moves_probabilities_the_same_way_every_time_and_leaves_no_trace():
    model = tiny.classifier("distilbert", head="agreement", specials=False).eval()
    plain, state = predicted(model), torch.random.get_rng_state()
    noisy = predicted(model, "dropout")
    assert (noisy["p1"] - plain["p1"]).abs().min() > 1e-6
    assert noisy.equals(predicted(model, "dropout"))
    assert torch.equal(state, torch.random.get_rng_state()) and not model.model.training
    assert predicted(model).equals(plain)


def test_two_classes_or_more_are_told_by_the_model_and_not_by_the_labels_that_occur():
    """Three classes, of which these texts have two, used to be given the F1 of class 1."""
    two = pd.DataFrame({"label": [0, 1], "predicted": [0, 1], "p0": [0.9, 0.2], "p1": [0.1, 0.8]})
    assert task_scores(two)["f1_binary"] == 1.0
    assert "f1_binary" not in task_scores(two.assign(p2=0.0))
    nothing_of_class_1 = two.assign(label=0, predicted=0)
    assert task_scores(nothing_of_class_1)["f1_binary"] == 0.0


def test_chance_is_asked_of_classes_or_of_spans():
    gold = np.arange(100) % 2
    right = pd.DataFrame({"label": gold, "predicted": gold})
    assert chance_p(right) == 0.001 and chance_p(right.assign(predicted=1)) == 1.0
    places = pd.DataFrame({"gold_start": range(100), "gold_end": range(100)})
    assert chance_p(places.assign(start=places["gold_start"], end=places["gold_end"])) < 1e-100
    assert chance_p(places.assign(start=0, end=0)) > 0.5
