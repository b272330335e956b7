"""The probe reads the encoder as it was pretrained, and is what scikit-learn makes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from transformers import AutoModel

from erlib.config import EvalSpec
from erlib.models import load_classifier
from erlib.training.evaluating import evaluate, per_text
from erlib.training.kinds.frozen_probe import mean_vectors
from erlib.training.rows import rows_of


def vectors_by_hand(name, rows, length):
    """[text, D] from the library's own encoder, one text at a time and so without a pad."""
    body, reader = AutoModel.from_pretrained(name).eval(), load_classifier(name, num_labels=2)
    found = []
    for text in reader.encode(rows, max_length=length):
        with torch.no_grad():
            states = body(**reader.batch([text]).inputs).last_hidden_state[0]
        found.append(states.mean(dim=0).numpy())
    return np.stack(found)


@pytest.fixture
def probe(spec):
    trained = replace(spec, optimiser=replace(spec.optimiser, epochs=1))
    return EvalSpec(trained, spec.data, "test", "frozen_probe", 12)


def test_it_is_scikit_learn_s_regression_on_the_mean_vectors_of_the_untrained_encoder(
    probe, tmp_path
):
    table = per_text(probe, store=tmp_path / "store")
    train, test = (rows_of(probe.data, *which) for which in (("train", None), ("test", 12)))
    known, asked = (
        vectors_by_hand(probe.run.model.name, rows, probe.data.max_length) for rows in (train, test)
    )
    regression = LogisticRegression(max_iter=1000).fit(known, train["label"][:])
    # as near as the fit's own tolerance brings two fits of vectors that differ by a rounding
    assert table["p1"].tolist() == pytest.approx(regression.predict_proba(asked)[:, 1], abs=1e-3)
    assert table["id"].tolist() == test["id"][:] and table["label"].tolist() == test["label"][:]
    assert table["p1"].std() > 0.01


def test_the_vectors_do_not_depend_on_the_texts_beside_them(probe):
    name, length = probe.run.model.name, probe.data.max_length
    rows, encoder = rows_of(probe.data, "test", 12), load_classifier(name, num_labels=2).eval()
    found = mean_vectors(encoder, encoder.encode(rows, max_length=length), batch_size=5)
    np.testing.assert_allclose(found, vectors_by_hand(name, rows, length), rtol=0, atol=1e-6)


def test_its_summary_has_the_scores_of_predictions_and_its_seed_of_training_changes_nothing(
    probe, tmp_path
):
    other = replace(probe, run=probe.run.with_seed(9))
    answers = replace(probe, kind="predictions")
    rows = evaluate([probe, other, answers], store=tmp_path / "store")
    assert rows["f1_macro"].notna().all() and rows["f1_binary"].notna().all()
    tables = [per_text(each, store=tmp_path / "store") for each in (probe, other)]
    assert tables[0].equals(tables[1])


def test_spans_have_none(probe, tmp_path):
    spans = replace(probe, run=replace(probe.run, model=replace(probe.run.model, task="span")))
    with pytest.raises(RuntimeError, match="which failed .*answers with a class"):
        per_text(spans, store=tmp_path / "store")
