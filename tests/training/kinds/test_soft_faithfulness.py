from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from erlib.config import EvalSpec
from erlib.metrics.soft_erasure import soft_erasure
from erlib.models import load_classifier
from erlib.training.evaluating import evaluate, per_text
from erlib.training.identity import run_hash
from erlib.training.rows import rows_of


def test_the_stored_values_are_those_of_the_stored_scores(spec, tmp_path):
    wanted = EvalSpec(spec, spec.data, "test", "soft_faithfulness", 6, "attention")
    store = tmp_path / "store"
    row = evaluate([wanted], store=store).iloc[0]
    table = per_text(wanted, store=store)
    scores = per_text(replace(wanted, kind="attributions"), store=store)["scores"]
    classifier = load_classifier(str(store / "runs" / run_hash(spec))).eval()
    texts = classifier.encode(rows_of(spec.data, "test", 6), max_length=32)
    expected = soft_erasure(classifier, texts, [np.asarray(s) for s in scores])
    columns = ["soft_sufficiency", "soft_comprehensiveness"]
    np.testing.assert_allclose(table[columns].to_numpy(), expected, atol=1e-6)
    assert row["soft_sufficiency"] == pytest.approx(np.nanmean(expected, axis=0)[0])
    assert row["texts"] == np.isfinite(expected)[:, 0].sum()
