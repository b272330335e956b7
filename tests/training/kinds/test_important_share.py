from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from erlib.config import EvalSpec
from erlib.training.evaluating import evaluate, per_text


def test_important_tokens_are_counted_above_each_of_nine_thresholds(spec, tmp_path):
    store = tmp_path / "store"
    wanted = EvalSpec(spec, spec.data, "test", "important_share", 4, "input_x_gradient", "ivra")
    row = evaluate([wanted], store=store).iloc[0]
    table = per_text(replace(wanted, kind="attributions"), store=store)
    shares = []
    for scores, special in zip(table["scores"], table["special"], strict=True):
        size = [abs(s) for s, is_special in zip(scores, special, strict=True) if not is_special]
        low, high = min(size), max(size)
        above = [
            sum((s - low) / (high - low) > z / 10 for s in size) / len(size) for z in range(1, 10)
        ]
        shares.append(sum(above) / 9)
    assert row["share"] == pytest.approx(np.mean(shares))
    assert row["aopc"] == pytest.approx(np.mean(shares) * 0.9) and row["texts"] == 4
    assert per_text(wanted, store=store)["share"].tolist() == pytest.approx(shares)
