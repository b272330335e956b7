"""Curvature of a trained model: the Jacobian written out, and the vector the classifier reads."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from erlib.config import DataSpec, EvalSpec
from erlib.training.evaluations import Evaluation, kind
from erlib.training.rows import rows_of
from tests import corpus, tiny


@pytest.fixture
def asked(tmp_path, monkeypatch):
    corpus.write(tmp_path / "data")
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path / "data"))
    return EvalSpec(None, DataSpec("movies", "local", 32), "test", "curvature", 5, protocol="exact")


def test_norms_are_those_of_the_jacobian_and_states_those_of_each_text_alone(asked):
    model = tiny.classifier("distilbert", head="agreement", specials=False).eval()
    rows = rows_of(asked.data, "test", 5)
    table = kind("curvature").per_text(Evaluation(asked, rows, lambda: model))
    for row, text in zip(table.itertuples(), model.encode(rows, max_length=32), strict=True):
        inputs = model.batch([text]).inputs
        output = model.forward(inputs)
        jacobian = torch.autograd.functional.jacobian(
            lambda e, inputs=inputs: model.forward(inputs, entry=e).pooled[0],
            output.entry.detach(),
        )[:, 0]  # [h, token, dim]
        assert row.id == text.id
        assert row.norm == pytest.approx(jacobian.norm().item(), rel=1e-4)
        assert row.sum == pytest.approx(jacobian.sum(dim=0).norm().item(), rel=1e-4)
        np.testing.assert_allclose(row.state, output.pooled[0].detach(), rtol=1e-5, atol=1e-6)


def test_the_summary_is_the_mean_over_texts(asked):
    model = tiny.classifier("distilbert", head="agreement", specials=False).eval()
    rows = rows_of(asked.data, "test", 5)
    table = kind("curvature").per_text(Evaluation(asked, rows, lambda: model))
    assert kind("curvature").summarise(table)["norm"] == pytest.approx(np.mean(table["norm"]))
