"""Do two systems, or two techniques, rank the tokens of a text alike? (Figures 3, 9 and 10)

For every text a seed of the one and another seed of the other are drawn, and Kendall's τ-b is taken
of the two vectors of |scores|, specials included. Two baselines of different seeds give the level
that two models reach which were trained alike. `column` is a set and a technique: "SST-Dev/DX".
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from erlib.config import EvalSpec
from erlib.metrics.agreement import kendall
from erlib.papers.er_lens.evaluations import annotated
from erlib.papers.er_lens.systems import CLASSIFIERS, TECHNIQUES
from erlib.papers.study import Study
from erlib.reports.cells import Cell as Place

DRAW = 42  # the paper's seed
Taken = tuple[str, str]  # of a system, a column


def attributed(study: Study, system: str, column: str) -> dict[int, EvalSpec]:
    """Seed → what measured its plausibility there, and so has its attributions."""
    cells = study.at(Place("table9", system, column, "auc_x100"))
    specs = {cell.seed: cell.specs[0] for cell in cells if study.has(*cell.specs)}
    return {seed: spec for seed, spec in specs.items() if isinstance(spec, EvalSpec)}


def vectors(study: Study, system: str, column: str, seed: int) -> list[np.ndarray]:
    """|scores| of every token, text by text: what plausibility and Kendall's τ look at."""
    spec = replace(attributed(study, system, column)[seed], kind="attributions")
    return [np.abs(scores) for scores in study.texts(spec)["scores"]]


def across_systems(study: Study, column: str, system: str) -> np.ndarray | None:
    """[text] τ of a technique between the Baseline and a system."""
    return taus(study, ("Baseline", column), (system, column))


def taus(
    study: Study, first: Taken, second: Taken, *, same_seed: bool = False
) -> np.ndarray | None:
    """[text] τ of both, of different seeds or of the same; None where there is no pair."""
    seeds = [sorted(attributed(study, *one)) for one in (first, second)]
    pairs = [(a, b) for a in seeds[0] for b in seeds[1] if (a == b) == same_seed]
    if not pairs:
        return None
    one, other = (
        {seed: vectors(study, *of, seed) for seed in found}
        for of, found in zip((first, second), seeds, strict=True)
    )
    texts = min(map(len, (*one.values(), *other.values())))  # expensive techniques have fewer
    draw = random.Random(DRAW)
    chosen = [draw.choice(pairs) for _ in range(texts)]
    return kendall(
        [one[a][i] for i, (a, _) in enumerate(chosen)],
        [other[b][i] for i, (_, b) in enumerate(chosen)],
    )


def histogram_table(study: Study, where: str, systems: Sequence[str]) -> pd.DataFrame:
    """τ of every text: set, system, technique, pair (BS-BS or BS-ER), tau."""
    tables = [pd.DataFrame(columns=["set", "system", "technique", "pair", "tau"])]
    name = annotated(study.settings)[where].name
    reference = {x: across_systems(study, f"{where}/{x}", "Baseline") for x in TECHNIQUES}
    for system in systems:
        for technique in TECHNIQUES:
            treated = across_systems(study, f"{where}/{technique}", system)
            for pair, found in (("BS-BS", reference[technique]), ("BS-ER", treated)):
                if found is not None:
                    what = {"set": name, "system": system, "technique": technique, "pair": pair}
                    tables.append(pd.DataFrame({**what, "tau": found}))
    return pd.concat(tables[1:] or tables, ignore_index=True)


def pairs_of_techniques(study: Study, where: str) -> pd.DataFrame:
    """Mean τ of every two techniques of a classifier that were measured: set, system, a, b, tau,
    one_seed.

    `one_seed`: of the same seed, for want of two. One model's techniques agree more than those of
    two models: such pairs are not to be compared.
    """
    rows = []
    for system in CLASSIFIERS:
        names = [x for x in TECHNIQUES if attributed(study, system, f"{where}/{x}")]
        for a, b in combinations(names, 2):
            both = (system, f"{where}/{a}"), (system, f"{where}/{b}")
            found = taus(study, *both)
            if alone := found is None:
                found = taus(study, *both, same_seed=True)
            tau = np.nan if found is None else np.nanmean(found)
            rows.append((annotated(study.settings)[where].name, system, a, b, tau, alone))
    return pd.DataFrame(rows, columns=["set", "system", "a", "b", "tau", "one_seed"])
