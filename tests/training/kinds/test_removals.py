from __future__ import annotations

import numpy as np

from erlib.config import EvalSpec
from erlib.metrics.normalised_aopc import bounds, drops
from erlib.models import load_classifier
from erlib.training.evaluating import evaluate, per_text
from erlib.training.identity import run_hash
from erlib.training.kinds import removals
from erlib.training.rows import rows_of


def test_the_first_short_texts_of_a_run_have_the_drops_of_all_their_sets(
    spec, tmp_path, monkeypatch
):
    monkeypatch.setattr(removals, "MOST_TEXTS", 2)
    wanted = EvalSpec(spec, spec.data, "test", "removals", 8)
    store = tmp_path / "store"
    assert evaluate([wanted], store=store).iloc[0]["texts"] == 2
    table = per_text(wanted, store=store).set_index("id")
    classifier = load_classifier(str(store / "runs" / run_hash(spec))).eval()
    texts = classifier.encode(rows_of(spec.data, "test", 8), max_length=32)
    short = [t for t in texts if len(t.words[0]) <= 10][:2]
    assert list(table.index) == [t.id for t in short]
    for text in short:
        drop = drops(classifier, text)
        np.testing.assert_allclose(table.loc[text.id, "drops"], drop, atol=1e-6)
        np.testing.assert_allclose(
            table.loc[text.id, ["low", "high"]].tolist(), bounds(drop), atol=1e-6
        )
        assert len(drop) == 2 ** len(text.words[0])
