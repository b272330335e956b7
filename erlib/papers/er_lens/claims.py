"""What was measured of the claims that are no differences of cells?

Distances between models of different seeds (ER-C8, ER-C24), and correlations over the seeds of
trained models (ER-C19, ER-C20).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from erlib.metrics.agreement import kendall
from erlib.papers.er_lens.kendall import measured, vectors
from erlib.papers.er_lens.scatter import f1_scores, points, predicted
from erlib.papers.er_lens.sets import HOME, annotated
from erlib.papers.er_lens.systems import TECHNIQUES
from erlib.papers.readings import Correlated, Distances
from erlib.papers.study import Study
from erlib.reports.criteria import criteria

Model = tuple[str, int]  # system, seed
PAIRS = {"all pairs of techniques": tuple(TECHNIQUES), "pairs without ATT": tuple(TECHNIQUES)[1:]}


def given(study: Study) -> dict[str, dict[str, Distances | Correlated]]:
    """By claim and contrast, as the criteria name them; without what was not measured."""
    makers = {"ER-C8": across_models, "ER-C19": related, "ER-C20": related, "ER-C24": changed}
    found: dict[str, dict[str, Distances | Correlated]] = {}
    for claim, make in makers.items():
        for contrast in criteria("er_lens")[claim].contrasts:
            places = [difference.after for difference in contrast.differences]
            made = make(study, [place.row for place in places], [p.column for p in places])
            if made is not None:
                found.setdefault(claim, {})[contrast.name] = made
    return found


def across_models(study: Study, rows: Sequence[str], columns: Sequence[str]) -> Distances | None:
    """ER-C8: mean τ of the techniques between a Baseline and the system that a row names."""

    def tau(a: Model, b: Model) -> float:
        taus = [kendall(vectors(study, *_at(a, c)), vectors(study, *_at(b, c))) for c in columns]
        return float(np.mean([np.nanmean(t) for t in taus]))

    return _distances(study, rows[0].removeprefix("Baseline and "), columns, tau)


def changed(study: Study, rows: Sequence[str], columns: Sequence[str]) -> Distances | None:
    """ER-C24: how far two models are in the mean τ of their pairs of techniques, |difference|."""
    techniques = [f"{HOME}/{x}" for x in PAIRS[columns[0]]]

    def distance(a: Model, b: Model) -> float:
        return float(np.abs(_profile(study, a, techniques) - _profile(study, b, techniques)).mean())

    return _distances(study, rows[0], techniques, distance)


def _profile(study: Study, model: Model, techniques: Sequence[str]) -> np.ndarray:
    """[pair] mean τ of every pair of techniques of a model, on the texts that both have."""

    def made() -> np.ndarray:
        scores = [vectors(study, *_at(model, column)) for column in techniques]
        both = [(a[: len(b)], b[: len(a)]) for a, b in combinations(scores, 2)]
        return np.array([np.nanmean(kendall(a, b)) for a, b in both])

    return study.once(("pairs of techniques", model, *techniques), made)


def _at(model: Model, column: str) -> tuple[str, str, int]:
    return model[0], column, model[1]


def _distances(
    study: Study, system: str, columns: Sequence[str], distance: Callable[[Model, Model], float]
) -> Distances | None:
    """Of the trained models of which all columns were measured; None where there are none left
    of either kind without one of the seeds, as the jackknife wants it."""

    def seeds(name: str) -> list[int]:
        each = [measured(study).get((name, column), {}) for column in columns]
        both = set.intersection(*(set(found) for found in each))
        return sorted(s for s in both if study.is_trained(each[0][s]))

    baselines, treated = seeds("Baseline"), seeds(system)
    if len(baselines) < 3 or len(treated) < 2:
        return None
    across = {
        (s, other): distance((system, s), ("Baseline", other))
        for s in treated
        for other in baselines
        if s != other
    }
    within = {
        (s, other): distance(("Baseline", s), ("Baseline", other))
        for s, other in combinations(baselines, 2)
    }
    texts = min(len(vectors(study, "Baseline", column, baselines[0])) for column in columns)
    return Distances(across, within, texts)


def related(study: Study, rows: Sequence[str], columns: Sequence[str]) -> Correlated | None:
    """ER-C19 and C20: a predictor ("AUC of DX-C on SST-Dev") and F1 ("F1 on Movies") by seed."""
    (what, where), (_, place) = rows[0].split(" on "), columns[0].split(" on ")
    sets = annotated(study.settings)
    if where not in sets or place not in sets:
        return None
    data = predicted(study, what.replace(" of ", "-"), sets[where], sets[place])
    scores, told = f1_scores(study), points(data)
    texts = int(scores.loc[scores["set"] == sets[place].name, "texts"].max())
    return Correlated(told, texts) if told else None
