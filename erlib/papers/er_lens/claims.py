"""What was measured of the claims that are no differences of cells?

Distances between models of different seeds (ER-C8, ER-C24), and correlations over the seeds of
trained models (ER-C19, ER-C20).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product

import numpy as np

from erlib.metrics.agreement import kendall
from erlib.papers.er_lens.evaluations import HOME, annotated
from erlib.papers.er_lens.kendall import attributed, vectors
from erlib.papers.er_lens.scatter import f1_at, points, predicted
from erlib.papers.er_lens.systems import CLASSIFIERS, TECHNIQUES
from erlib.papers.readings import Correlated, Distances
from erlib.papers.study import Study, made_once
from erlib.reports.cells import Cell as Place
from erlib.reports.criteria import criteria

Model = tuple[str, int]  # system, seed
Given = dict[str, dict[str, Distances | Correlated]]
PAIRS = {"all pairs of techniques": tuple(TECHNIQUES), "pairs without ATT": tuple(TECHNIQUES)[1:]}


def given(study: Study) -> Given:
    """By claim and contrast, as the criteria name them; without what was not measured."""
    makers = {"ER-C8": across_models, "ER-C19": related, "ER-C20": related, "ER-C24": changed}
    found: Given = {}
    for claim, make in makers.items():
        for contrast in criteria("er_lens")[claim].contrasts:
            if made := make(study, [difference.after for difference in contrast.differences]):
                found.setdefault(claim, {})[contrast.name] = made
    return found


def across_models(study: Study, places: Sequence[Place]) -> Distances | None:
    """ER-C8: mean τ of the techniques between a Baseline and the system that a row names."""
    columns = [place.column for place in places]

    def tau(a: Model, b: Model) -> float:
        taus = [kendall(_scores(study, a, c), _scores(study, b, c)) for c in columns]
        return float(np.mean([np.nanmean(t) for t in taus]))

    return _distances(study, places[0].row.removeprefix("Baseline and "), columns, tau)


def changed(study: Study, places: Sequence[Place]) -> Distances | None:
    """ER-C24: how far two models are in the mean τ of their pairs of techniques, |difference|."""
    columns = tuple(f"{HOME}/{x}" for x in PAIRS[places[0].column])

    def distance(a: Model, b: Model) -> float:
        return float(np.abs(_profile(study, a, columns) - _profile(study, b, columns)).mean())

    return _distances(study, places[0].row, columns, distance)


@made_once
def _profile(study: Study, model: Model, columns: tuple[str, ...]) -> np.ndarray:
    """[pair] mean τ of every pair of techniques of a model, on the texts that both have."""
    scores = [_scores(study, model, column) for column in columns]
    both = [(a[: len(b)], b[: len(a)]) for a, b in combinations(scores, 2)]
    return np.array([np.nanmean(kendall(a, b)) for a, b in both])


def _scores(study: Study, model: Model, column: str) -> list[np.ndarray]:
    return vectors(study, model[0], column, model[1])


def _distances(
    study: Study, system: str, columns: Sequence[str], distance: Callable[[Model, Model], float]
) -> Distances | None:
    """Of the trained models of which all columns were measured; None where there are none left
    of either kind without one of the seeds, as the jackknife wants it."""

    def models(name: str) -> list[Model]:
        each = [attributed(study, name, column) for column in columns]
        both = sorted(set.intersection(*map(set, each)))
        return [(name, seed) for seed in both if study.is_trained(each[0][seed])]

    baselines, treated = models("Baseline"), models(system)
    if len(baselines) < 3 or len(treated) < 2:
        return None
    across, within = (
        {(a[1], b[1]): distance(a, b) for a, b in pairs if a[1] != b[1]}
        for pairs in (product(treated, baselines), combinations(baselines, 2))
    )
    texts = min(len(_scores(study, baselines[0], column)) for column in columns)
    return Distances(across, within, texts)


def related(study: Study, places: Sequence[Place]) -> Correlated | None:
    """ER-C19 and C20: a predictor ("AUC of DX-C on SST-Dev") and F1 ("F1 on Movies") by seed."""
    (what, where), (_, test) = places[0].row.split(" on "), places[0].column.split(" on ")
    sets = annotated(study.settings)
    if where not in sets or test not in sets:
        return None
    told = points(predicted(study, what.replace(" of ", "-"), sets[where], sets[test]))
    each = [study.read(f1_at(system, sets[test])) or {} for system in CLASSIFIERS]
    texts = max((one.count for of in each for one in of.values()), default=0)
    return Correlated(told, texts) if told else None
