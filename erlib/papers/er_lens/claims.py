"""Which of our numbers go into which claim of the paper?

What a claim says, what the paper measured and by which rule it is decided are data
(`erlib/claims/er_lens.toml`); here are the measurements of its parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from erlib.metrics.task import f1_difference, f1_macro
from erlib.papers.er_lens.systems import ANNOTATED, TestSet, annotated, system_of, test_sets
from erlib.parameters import Settings
from erlib.training.executors import per_text
from erlib.training.stages import Results

Measured = dict[str, dict[str, Any]]


def measure_claims(settings: Settings, results: Results) -> dict[str, Measured]:
    """Claim id → part → what its rule takes, for the claims that this grid can speak to."""
    pairs = _Pairs(settings, results)
    outside = [t for t in test_sets(settings) if not t.in_domain and t.paper != "Yelp-50"]
    marked = [t for t in annotated(settings) if t.paper in ANNOTATED]
    spread = [t for t in outside if t.paper in ("Movies", "Yelp")]
    measured: dict[str, Measured] = {
        "ER-C1": {
            "pooled": pairs.f1_differences(outside),
            **{str(t.paper): pairs.f1_differences([t]) for t in outside if t.paper},
        },
        "ER-C3": {
            **{str(t.paper): pairs.f1_values(t) for t in spread},
            **{f"lower quartile {t.paper}": pairs.f1_values(t) for t in spread},
        },
        "ER-C4": {str(t.paper): pairs.auc_differences(t) for t in marked},
    }
    return {claim: parts for claim, parts in measured.items() if parts}


class _Pairs:
    """Baseline and ER+Att, paired by seed, on the same texts."""

    systems = ("Baseline", "ER+Att")

    def __init__(self, settings: Settings, results: Results) -> None:
        self.store = settings.store
        self.specs = {
            (system_of(s.run), s.run.seed, s.data.corpus, s.split, s.kind): s
            for s in results["measurements"]["spec"]
        }
        seeds = [{key[1] for key in self.specs if key[0] == system} for system in self.systems]
        self.seeds = sorted(set.intersection(*seeds))

    def tables(self, seed: int, test: TestSet, kind: str) -> list[pd.DataFrame]:
        """The per-text results of both systems."""
        keys = [(system, seed, test.corpus, test.split, kind) for system in self.systems]
        return [per_text(self.specs[key], store=self.store) for key in keys]

    def f1_differences(self, sets: list[TestSet]) -> dict[str, Any]:
        """ER+Att minus Baseline in F1 points, the mean over `sets`."""
        rows = [
            np.concatenate([self._answers(seed, t, i) for i, t in enumerate(sets)])
            for seed in self.seeds
        ]
        return {
            "differences": [_mean_f1_difference(r) for r in rows],
            "per_text": rows,
            "statistic": _mean_f1_difference,
        }

    def _answers(self, seed: int, test: TestSet, index: int) -> NDArray[np.float64]:
        """[text, (gold, Baseline's, ER+Att's, index of the set)]"""
        a, b = self.tables(seed, test, "predictions")
        columns = [a["label"], a["predicted"], b["predicted"], np.full(len(a), index)]
        return np.stack(columns, axis=1).astype(float)

    def f1_values(self, test: TestSet) -> dict[str, Any]:
        """F1 of each seed: `baseline` and `treated`."""
        values = np.array(
            [
                [
                    100 * f1_macro(t["label"], t["predicted"])
                    for t in self.tables(seed, test, "predictions")
                ]
                for seed in self.seeds
            ]
        )
        return {"baseline": values[:, 0], "treated": values[:, 1]}

    def auc_differences(self, test: TestSet) -> dict[str, Any]:
        """ER+Att minus Baseline in AUC points, per text (NaN where undefined)."""
        rows = []
        for seed in self.seeds:
            a, b = self.tables(seed, test, "plausibility")
            rows.append(100 * (b["auc"] - a["auc"]).to_numpy())
        return {"differences": [np.nanmean(r) for r in rows], "per_text": rows}


def _mean_f1_difference(rows: NDArray[np.float64]) -> float:
    """Mean over sets of the F1 difference, from rows [text, (gold, a, b, set)]."""
    return float(np.mean([f1_difference(rows[rows[:, 3] == s, :3]) for s in np.unique(rows[:, 3])]))
