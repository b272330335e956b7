"""Do two systems, or two techniques, rank the tokens of a text alike? (Figures 3, 9 and 10)

For every text a seed of the one and another seed of the other are drawn, and Kendall's τ-b is taken
of the two vectors of |scores|, specials included. Two baselines of different seeds give the level
that two models reach which were trained alike.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from erlib.metrics.agreement import kendall
from erlib.papers.er_lens.sets import TestSet
from erlib.papers.er_lens.study import Study
from erlib.papers.er_lens.systems import CLASSIFIERS, TECHNIQUES

DRAW = 42  # the paper's seed


def across_systems(
    study: Study, test: TestSet, technique: str, system: str, *, over: str = "Baseline"
) -> np.ndarray | None:
    """[text] τ of a technique between `over` and `system`; None where there are not two seeds."""
    return _drawn(study, test, (over, technique), (system, technique))


def within_system(
    study: Study, test: TestSet, system: str, a: str, b: str, *, same_seed: bool
) -> np.ndarray | None:
    """[text] τ between two techniques of a system, of different seeds or of the same."""
    return _drawn(study, test, (system, a), (system, b), same_seed=same_seed)


def _drawn(
    study: Study,
    test: TestSet,
    first: tuple[str, str],
    second: tuple[str, str],
    *,
    same_seed: bool = False,
) -> np.ndarray | None:
    places = [
        [p for p in study.places(system) if study.has(system, p, test, technique)]
        for system, technique in (first, second)
    ]
    pairs = [(v1, v2) for v1 in places[0] for v2 in places[1] if (v1 == v2) == same_seed]
    if not pairs:
        return None
    scores = {
        (side, p): study.attributions(which[0], p, test, which[1])
        for side, which in enumerate((first, second))
        for p in places[side]
    }
    texts = min(len(s) for s in scores.values())  # dear techniques are taken of fewer
    draw = random.Random(DRAW)
    chosen = [draw.choice(pairs) for _ in range(texts)]
    one = [scores[0, v1][i] for i, (v1, _) in enumerate(chosen)]
    other = [scores[1, v2][i] for i, (_, v2) in enumerate(chosen)]
    return kendall(one, other)


def histogram_table(study: Study, test: TestSet) -> pd.DataFrame:
    """τ of every text: set, system, technique, pair (BS-BS or BS-ER), tau."""
    rows = []
    reference = {x: across_systems(study, test, x, "Baseline") for x in TECHNIQUES}
    for system in CLASSIFIERS[1:]:
        for technique in TECHNIQUES:
            treated = across_systems(study, test, technique, system)
            for pair, taus in (("BS-BS", reference[technique]), ("BS-ER", treated)):
                if taus is not None:
                    rows.append(
                        pd.DataFrame(
                            {
                                "set": test.name,
                                "system": system,
                                "technique": technique,
                                "pair": pair,
                                "tau": taus,
                            }
                        )
                    )
    columns = ["set", "system", "technique", "pair", "tau"]
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=columns)


class Matrix(NamedTuple):
    """Mean τ between techniques, 1 on the diagonal; and where it is of one seed, for want of two.

    One model's techniques agree more than those of two models: such cells are not to be compared.
    """

    tau: pd.DataFrame
    one_seed: pd.DataFrame


def matrix(study: Study, test: TestSet, system: str, names: Sequence[str]) -> Matrix:
    """Every technique of a system against every other."""
    tau = pd.DataFrame(np.eye(len(names)), index=list(names), columns=list(names))
    one_seed = pd.DataFrame(False, index=list(names), columns=list(names))
    for a, b in combinations(names, 2):
        taus = within_system(study, test, system, a, b, same_seed=False)
        if alone := taus is None:
            taus = within_system(study, test, system, a, b, same_seed=True)
        one_seed.loc[a, b] = one_seed.loc[b, a] = alone
        tau.loc[a, b] = tau.loc[b, a] = np.nan if taus is None else np.nanmean(taus)
    return Matrix(tau, one_seed)


def measured_techniques(study: Study, test: TestSet, system: str) -> list[str]:
    """The techniques taken of a system on a set, of at least one seed."""
    return [
        x for x in TECHNIQUES if any(study.has(system, p, test, x) for p in study.places(system))
    ]
