from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from erlib.config import EvalSpec
from erlib.models import load_classifier
from erlib.training.evaluating import evaluate, per_text
from erlib.training.identity import run_hash
from erlib.training.rows import rows_of


def test_consistency_compares_the_distances_of_states_and_of_explanations(spec, tmp_path):
    """By brute force: every text alone, every pair by itself, positions beyond the end zero."""
    store = tmp_path / "store"
    wanted = EvalSpec(spec, spec.data, "test", "consistency", 9, "input_x_gradient", "ivra")
    row = evaluate([wanted], store=store).iloc[0]
    model = load_classifier(str(store / "runs" / run_hash(spec)))
    texts = model.encode(rows_of(spec.data, "test", 9), max_length=32)
    longest = max(len(t.input_ids) for t in texts)
    states, maps = [], []
    for text, scores in zip(
        texts, per_text(replace(wanted, kind="attributions"), store=store)["scores"], strict=True
    ):
        layers = model.forward(model.batch([text]).inputs).hidden_states[1:]
        mean = np.mean([h[0].detach().double().numpy() for h in layers], axis=0)
        states.append(np.pad(mean, ((0, longest - len(mean)), (0, 0))))
        maps.append(np.pad(np.abs(scores) / np.abs(scores).sum(), (0, longest - len(scores))))
    pairs = [(i, j) for i in range(9) for j in range(i)]
    of_states = [np.linalg.norm(states[i] - states[j], axis=1).mean() for i, j in pairs]
    of_maps = [np.linalg.norm(maps[i] - maps[j]) for i, j in pairs]
    expected = spearmanr(of_states, of_maps).statistic
    assert row["consistency"] == pytest.approx(expected, abs=1e-6)
    assert (row["batches"], row["skipped"]) == (1, 0)
    assert per_text(wanted, store=store)["texts"].tolist() == [9]
