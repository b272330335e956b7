"""How do two systems differ, seed by seed and text by text?

Everything here has the form that the rules of `erlib.metrics.verdicts` take: one difference per
seed (`differences`, by seed), the texts behind it (`per_text`), and how one follows from the other
(`statistic`; the mean where none is given).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from erlib.metrics.task import f1_difference
from erlib.papers.er_lens.sets import TestSet
from erlib.papers.er_lens.study import Study

Measured = dict[str, Any]


def f1_differences(
    study: Study, system: str, sets: list[TestSet], *, over: str = "Baseline"
) -> Measured | None:
    """`system` minus `over` in F1 points, the mean over `sets`."""
    places = study.deciding(over, system)
    if not places or not sets:
        return None
    rows = [
        np.concatenate([_answers(study, system, over, p, t, i) for i, t in enumerate(sets)])
        for p in places
    ]
    return {
        "differences": pd.Series([mean_f1_difference(r) for r in rows], places),
        "per_text": rows,
        "statistic": mean_f1_difference,
    }


def _answers(
    study: Study, system: str, over: str, place: int, test: TestSet, index: int
) -> NDArray[np.float64]:
    """[text, (gold, answer of `over`, answer of `system`, index of the set)]"""
    a, b = (study.predictions(s, place, test) for s in (over, system))
    columns = [a["label"], a["predicted"], b["predicted"], np.full(len(a), index)]
    return np.stack(columns, axis=1).astype(float)


def mean_f1_difference(rows: NDArray[np.float64]) -> float:
    """Mean over sets of the F1 difference, from rows [text, (gold, a, b, set)]."""
    return float(np.mean([f1_difference(rows[rows[:, 3] == s, :3]) for s in np.unique(rows[:, 3])]))


def auc_differences(
    study: Study,
    system: str,
    test: TestSet | None,
    technique: str,
    *,
    over: str = "Baseline",
    measure: str = "auc",
) -> Measured | None:
    """`system` minus `over` in points of a plausibility measure (NaN where a text has none)."""
    if test is None:
        return None
    rows = {}
    for place in measured_places(study, test, technique, over, system):
        a, b = (study.plausibility(s, place, test, technique)[measure] for s in (over, system))
        rows[place] = 100 * (b - a).to_numpy()
    return _of_rows(rows)


def measured_places(study: Study, test: TestSet, technique: str, *systems: str) -> list[int]:
    """The seeds that decide between the systems and of which the technique was taken of each."""
    every = study.deciding(*systems)
    return [p for p in every if all(study.has(s, p, test, technique) for s in systems)]


def layer_differences(
    study: Study, system: str, test: TestSet, technique: str, layer: int
) -> Measured | None:
    """As `auc_differences`, over the Baseline, for one layer's attribution."""
    changes = _layer_changes(study, system, test, technique)
    return _of_rows({place: r[:, layer] for place, r in changes.items()})


def layer_shift(
    study: Study, system: str, test: TestSet, technique: str, layers: Sequence[int]
) -> Measured | None:
    """How far these layers' AUC has moved from the Baseline's, whichever way, in points."""
    changes = _layer_changes(study, system, test, technique)
    rows = {place: r[:, list(layers)] for place, r in changes.items()}
    if not rows:
        return None
    return {
        "differences": pd.Series({place: mean_shift(r) for place, r in rows.items()}),
        "per_text": list(rows.values()),
        "statistic": mean_shift,
    }


def mean_shift(rows: NDArray[np.float64]) -> float:
    """Mean over layers of |the layer's mean change|, from rows [text, layer]."""
    return float(np.abs(np.nanmean(rows, axis=0)).mean())


def _layer_changes(
    study: Study, system: str, test: TestSet, technique: str
) -> dict[int, NDArray[np.float64]]:
    """Per seed [text, layer]: `system` minus the Baseline in points of AUC."""
    both = ("Baseline", system)
    rows = {}
    for place in measured_places(study, test, technique, *both):
        a, b = (study.layer_auc(s, place, test, technique) for s in both)
        rows[place] = 100 * (b - a)
    return _defined(rows)


def _defined(rows: dict[int, NDArray[np.float64]]) -> dict[int, NDArray[np.float64]]:
    """Without the seeds of which no text has a value."""
    return {place: r for place, r in rows.items() if not np.isnan(r).all()}


def _of_rows(every: dict[int, NDArray[np.float64]]) -> Measured | None:
    rows = _defined(every)
    if not rows:
        return None
    means = pd.Series({place: float(np.nanmean(r)) for place, r in rows.items()})
    return {"differences": means, "per_text": list(rows.values())}
