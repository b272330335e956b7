"""Predictions are made in evaluation mode unless dropout is asked for."""

from __future__ import annotations

import pytest
import torch

from erlib.config import DataSpec, EvalSpec
from erlib.training.evaluations import Evaluation, kind
from erlib.training.identity import rows_of
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
