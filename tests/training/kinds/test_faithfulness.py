"""The stored faithfulness of a run is what single forward passes of its model give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from erlib.config import EvalSpec
from erlib.models import load_classifier
from erlib.training.evaluating import evaluate, per_text
from erlib.training.identity import run_hash
from erlib.training.rows import rows_of
from tests.metrics.test_faithfulness import naive


@pytest.mark.parametrize(
    ("protocol", "method", "bins"),
    [("regex", "scaled_attention", 5), ("er_lens", "attention", 6), ("ivra", "attention", 5)],
)
def test_every_bin_of_every_text_agrees_with_brute_force(spec, tmp_path, protocol, method, bins):
    wanted = EvalSpec(
        spec, spec.data, "test", "faithfulness", 5, method, protocol, protocol=protocol
    )
    store = tmp_path / "store"
    row = evaluate([wanted], store=store).iloc[0]
    table = per_text(wanted, store=store)

    classifier = load_classifier(str(store / "runs" / run_hash(spec))).eval()
    texts = classifier.encode(rows_of(spec.data, "test", 5), max_length=32)
    shared = per_text(replace(wanted, kind="attributions"), store=store)
    expected = naive(classifier, texts, {method: list(shared["scores"])}, protocol)
    pd.testing.assert_frame_equal(table[expected.columns], expected, rtol=0, atol=1e-5)
    assert len(table) == 5 * bins and row["texts"] == 5

    column = "sufficiency" if protocol == "ivra" else "normalised_sufficiency"
    sums = expected.groupby("id")[column].sum(min_count=1)  # of texts that are not left out
    assert row[column] == pytest.approx((sums / (bins + 1)).mean(), abs=1e-5)
    assert row[f"{column}_mean"] == pytest.approx((sums / bins).mean(), abs=1e-5)
    assert np.isfinite(row[column]) and table["p_kept"].nunique() > 5


def test_words_cannot_be_erased_and_an_unknown_protocol_is_refused(spec, tmp_path):
    wanted = EvalSpec(spec, spec.data, "test", "faithfulness", 2, "attention", protocol="regx")
    with pytest.raises(ValueError, match="unknown protocol of faithfulness 'regx'; did you mean"):
        evaluate([wanted], store=tmp_path / "store")
    with pytest.warns(UserWarning, match="level must be 'token', not 'word'"):
        evaluate([replace(wanted, protocol="regex", level="word")], store=tmp_path / "store")
