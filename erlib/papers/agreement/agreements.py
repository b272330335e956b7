"""What does a run say of its test texts, epoch by epoch, and its kept model?

A run of the paper profile has a quarter of a million agreements: each table is read once, and what
cells need of it is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
import torch

from erlib.attributions import equal_by_construction
from erlib.config import RunSpec
from erlib.metrics.cartography import cartography, nearest_distance
from erlib.papers.cells import Spec
from erlib.papers.study import Study, made_once
from erlib.training.identity import run_hash
from erlib.training.store import open_store

NAMES = {
    "deeplift": "DeepLIFT",
    "deepshap": "D-SHAP",
    "gradshap": "G-SHAP",
    "integrated_gradients": "Int-Grad",
}
PAIRS = tuple(f"{NAMES[a]} vs {NAMES[b]}" for a, b in combinations(NAMES, 2))
(SAME,) = (  # one function, while nothing is drawn at random
    f"{NAMES[a]} vs {NAMES[b]}"
    for a, b in combinations(NAMES, 2)
    if equal_by_construction((a, "agreement"), (b, "agreement"))
)
DIFFERENT = tuple(pair for pair in PAIRS if pair != SAME)
METRICS = {"kendall_tau": "kendall", "pearson_r": "pearson"}  # the paper's column → ours


@dataclass(frozen=True)
class Agreements:
    """τ and r: of each metric a table [(epoch, text), pair], NaN where one side is constant.

    `gaps` [text, method]: the size of the completeness gap in the last epoch.
    """

    of: Mapping[str, pd.DataFrame]
    gaps: pd.DataFrame


@dataclass(frozen=True)
class Predicted:
    """Of test texts: `answers` [text, (label, predicted)] of the kept model, and their `map`."""

    answers: pd.DataFrame
    map: pd.DataFrame


@made_once
def agreements(study: Study, run: RunSpec) -> Agreements:
    """Agreement after every epoch."""
    return _agreements(study.each_epoch(run, run.each_epoch[1]))


def pairs_of(
    study: Study, run: RunSpec, metric: str = "pearson_r", epoch: int | None = None
) -> pd.DataFrame:
    """[text, pair] of a run, after its last epoch unless given; none stops early."""
    return agreements(study, run).of[metric].loc[epoch or run.optimiser.epochs]


def text_means(
    study: Study,
    run: RunSpec,
    metric: str = "pearson_r",
    epoch: int | None = None,
    pairs: Sequence[str] = PAIRS,
) -> pd.Series:
    """[text] agreement of a text, the mean over pairs."""
    return pairs_of(study, run, metric, epoch)[list(pairs)].mean(axis=1)


@made_once
def under_dropout(study: Study, spec: Spec) -> dict[str, pd.DataFrame]:
    """By metric [text, pair] of the kept model, explained with dropout on."""
    found = _agreements(study.texts(spec, keep=False).assign(epoch=0))
    return {metric: table.loc[0] for metric, table in found.of.items()}


def _agreements(table: pd.DataFrame) -> Agreements:
    pair = table["method_a"].map(NAMES) + " vs " + table["method_b"].map(NAMES)
    indexed = table.assign(pair=pair).set_index(["epoch", "id", "pair"])
    of = {metric: indexed[ours].unstack(sort=False) for metric, ours in METRICS.items()}
    last = table[table["epoch"] == table["epoch"].max()]
    sides = [last[[f"method_{s}", "id", f"gap_{s}"]].set_axis(["m", "id", "gap"], axis=1)
             for s in "ab"]  # fmt: skip
    gaps = pd.concat(sides).drop_duplicates(["m", "id"]).pivot(index="id", columns="m")["gap"]
    return Agreements(of, gaps.abs())


@made_once
def predicted(study: Study, run: RunSpec, *, dropout: bool = False) -> Predicted:
    """Predictions on test texts after every epoch, in evaluation mode or with dropout on."""
    table = study.each_epoch(run, run.each_epoch[2 if dropout else 0])
    gold = np.where(table["label"] == 1, table["p1"], table["p0"])
    table = table.assign(p_gold=gold, right=table["label"] == table["predicted"])
    p = table.pivot(index="epoch", columns="id", values="p_gold")
    right = table.pivot(index="epoch", columns="id", values="right").astype(bool)
    found = cartography(p.to_numpy(), right.to_numpy(), ids=list(p.columns)).set_index("id")
    kept = table[table["epoch"] == int(study.value(run, "best_epoch"))]
    return Predicted(kept.set_index("id")[["label", "predicted"]], found)


def map_of(study: Study, run: RunSpec, *, dropout: bool = False) -> pd.DataFrame:
    """Cartography of the run's test texts: [text, (confidence, variability, …, group)]."""
    return predicted(study, run, dropout=dropout).map


@made_once
def curvature_of(study: Study, spec: Spec) -> pd.DataFrame:
    """[text, (norm, sum, min_dist)]: grad norm, its cheaper relative and min dist."""
    table = study.texts(spec, keep=False).set_index("id")
    states = torch.tensor(np.stack(table["state"].to_numpy()))
    return table.assign(min_dist=nearest_distance(states))[["norm", "sum", "min_dist"]]


def minutes(study: Study, run: RunSpec) -> float:
    """How long a run took: training, and explaining the test texts after every epoch."""
    sealed = open_store(study.settings.store).get("runs", run_hash(run))
    assert sealed is not None  # it has been trained
    return float(sealed.read("provenance.json")["seconds"]) / 60
