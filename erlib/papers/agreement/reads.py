"""How is each number read from what runs say of their test texts?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd

from erlib.config import RunSpec
from erlib.metrics.correlations import fisher_mean, pearson
from erlib.metrics.task import f1_binary
from erlib.papers.agreement.agreements import (
    DIFFERENT,
    METRICS,
    curvature_of,
    map_of,
    minutes,
    pairs_of,
    predicted,
    text_means,
    under_dropout,
)
from erlib.papers.cells import Read, Reading, Spec, mean_over
from erlib.papers.study import Study

STATISTICS = {"Grad norm": "norm", "Min dist": "min_dist", "Grad of sum": "sum"}


def mean(of: Callable[[Study, RunSpec], pd.Series], *, chosen: bool = False) -> Read:
    """The mean over the texts of a run that have a number; `chosen` by the model itself?"""
    return mean_over(lambda study, specs: of(study, _run(specs[0])), chosen=chosen)


def agreement_at(epoch: int | None) -> dict[str, Read]:
    """τ and r, mean over all six pairs, after this epoch; None: the last."""
    return {m: mean(partial(text_means, metric=m, epoch=epoch)) for m in METRICS}


def of_pair(pair: str) -> dict[str, Read]:
    """τ and r of one pair after the last epoch."""

    def of(study: Study, run: RunSpec, metric: str) -> pd.Series:
        return pairs_of(study, run, metric)[pair]

    return {m: mean(partial(of, metric=m)) for m in METRICS}


def of_pair_under_dropout(pair: str) -> dict[str, Read]:
    """The same as the paper's code took it: of the kept model, with dropout on."""

    def of(study: Study, specs: Sequence[Spec], metric: str) -> pd.Series:
        return under_dropout(study, specs[1])[metric][pair]

    return {m: mean_over(partial(of, metric=m)) for m in METRICS}


def explained(pairs: Sequence[str], *, dropout: bool = False) -> Read:
    """r of the kept model with or without dropout, on the texts that were explained with it."""

    def of(study: Study, specs: Sequence[Spec]) -> pd.Series:
        run, noisy = _run(specs[0]), under_dropout(study, specs[1])["pearson_r"]
        quiet = pairs_of(study, run, epoch=int(study.value(run, "best_epoch")))
        table = noisy if dropout else quiet[quiet.index.isin(noisy.index)]
        return table[list(pairs)].mean(axis=1)

    return mean_over(of)


def attribute_of(attribute: str, *, dropout: bool = False) -> Read:
    """Mean confidence or variability."""
    return mean(lambda study, run: map_of(study, run, dropout=dropout)[attribute])


def agreement_in(group: str, pairs: Sequence[str]) -> Read:
    """r of the explained texts that the run itself puts into a cartography group."""

    def of(study: Study, run: RunSpec) -> pd.Series:
        texts = text_means(study, run, pairs=pairs)
        return texts[map_of(study, run)["group"].reindex(texts.index) == group]

    return mean(of, chosen=True)


def correlation(statistic: str, attribute: str) -> Read:
    """Pearson's r over texts of curvature with an attribute of the map."""

    def read(study: Study, specs: Sequence[Spec]) -> Reading:
        bent = curvature_of(study, specs[1]).join(map_of(study, _run(specs[0])))
        texts = bent[[STATISTICS[statistic], attribute]]
        return Reading(pearson(texts), texts, pearson)

    return read


def mean_correlation(statistic: str, attribute: str) -> Read:
    """Its mean over sets on Fisher's z scale; `specs` are run and curvature of each."""
    one = correlation(statistic, attribute)

    def read(study: Study, specs: Sequence[Spec]) -> Reading:
        pairs = zip(specs[::2], specs[1::2], strict=True)
        return Reading(fisher_mean([one(study, pair).value for pair in pairs]))

    return read


def over_sets(epoch: int) -> Read:
    """r of the five pairs that are two methods, mean over texts and then over sets."""

    def read(study: Study, specs: Sequence[Spec]) -> Reading:
        runs = {run.data.corpus: run for run in map(_run, specs)}
        of = {c: text_means(study, r, epoch=epoch, pairs=DIFFERENT) for c, r in runs.items()}
        texts = pd.concat(of, names=["set"]).dropna().to_frame("r")
        return Reading(mean_of_sets(texts), texts, mean_of_sets)

    return read


def mean_of_sets(texts: pd.DataFrame) -> float:
    """Over texts, then over sets, the first level of the index."""
    sets = texts.index.codes[0]  # type: ignore[attr-defined]
    counts, sums = np.bincount(sets), np.bincount(sets, weights=texts["r"])
    return float((sums[counts > 0] / counts[counts > 0]).mean())


def f1_on_test(study: Study, specs: Sequence[Spec]) -> Reading:
    """Binary F1 on test texts after the kept epoch."""
    answers = predicted(study, _run(specs[0])).answers
    return Reading(_f1(answers), answers, _f1)


def _f1(answers: pd.DataFrame) -> float:
    return f1_binary(answers["label"], answers["predicted"])


def time_taken(study: Study, specs: Sequence[Spec]) -> Reading:
    """Minutes."""
    return Reading(minutes(study, _run(specs[0])))


def weight_of(study: Study, specs: Sequence[Spec]) -> Reading:
    """λ."""
    return Reading(_run(specs[0]).objective[-1].weight)


def _run(spec: Spec) -> RunSpec:
    assert isinstance(spec, RunSpec)
    return spec
