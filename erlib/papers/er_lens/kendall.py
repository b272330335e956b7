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
from typing import NamedTuple

import numpy as np
import pandas as pd

from erlib.config import EvalSpec
from erlib.metrics.agreement import kendall
from erlib.papers.er_lens.sets import annotated
from erlib.papers.er_lens.systems import CLASSIFIERS, TECHNIQUES
from erlib.papers.study import Study

DRAW = 42  # the paper's seed


def measured(study: Study) -> dict[tuple[str, str], dict[int, EvalSpec]]:
    """(system, column) → seed → what measured its plausibility, and so has its attributions."""

    def made() -> dict[tuple[str, str], dict[int, EvalSpec]]:
        found: dict[tuple[str, str], dict[int, EvalSpec]] = {}
        for cell in study.of("table9"):
            spec = cell.specs[0]
            if study.has(spec) and isinstance(spec, EvalSpec):
                found.setdefault((cell.row, cell.column), {})[cell.seed] = spec
        return found

    return study.once("attributions", made)


def vectors(study: Study, system: str, column: str, seed: int) -> list[np.ndarray]:
    """|scores| of every token, text by text: what plausibility and Kendall's τ look at."""
    spec = measured(study)[system, column][seed]
    return [np.abs(scores) for scores in study.texts(replace(spec, kind="attributions"))["scores"]]


def across_systems(
    study: Study, column: str, system: str, *, over: str = "Baseline"
) -> np.ndarray | None:
    """[text] τ of a technique between `over` and `system`; None where there are not two seeds."""
    return _drawn(study, (over, column), (system, column))


def within_system(
    study: Study, system: str, a: str, b: str, *, same_seed: bool
) -> np.ndarray | None:
    """[text] τ between two techniques of a system, of different seeds or of the same."""
    return _drawn(study, (system, a), (system, b), same_seed=same_seed)


def _drawn(
    study: Study, first: tuple[str, str], second: tuple[str, str], *, same_seed: bool = False
) -> np.ndarray | None:
    seeds = [sorted(measured(study).get(which, {})) for which in (first, second)]
    pairs = [(v1, v2) for v1 in seeds[0] for v2 in seeds[1] if (v1 == v2) == same_seed]
    if not pairs:
        return None
    scores = {
        (side, seed): vectors(study, *which, seed)
        for side, which in enumerate((first, second))
        for seed in seeds[side]
    }
    texts = min(len(s) for s in scores.values())  # expensive techniques are taken of fewer
    draw = random.Random(DRAW)
    chosen = [draw.choice(pairs) for _ in range(texts)]
    one = [scores[0, v1][i] for i, (v1, _) in enumerate(chosen)]
    other = [scores[1, v2][i] for i, (_, v2) in enumerate(chosen)]
    return kendall(one, other)


def histogram_table(study: Study, where: str, systems: Sequence[str]) -> pd.DataFrame:
    """τ of every text: set, system, technique, pair (BS-BS or BS-ER), tau."""
    rows = [pd.DataFrame(columns=["set", "system", "technique", "pair", "tau"])]
    name = annotated(study.settings)[where].name
    reference = {x: across_systems(study, f"{where}/{x}", "Baseline") for x in TECHNIQUES}
    for system in systems:
        for technique in TECHNIQUES:
            treated = across_systems(study, f"{where}/{technique}", system)
            for pair, taus in (("BS-BS", reference[technique]), ("BS-ER", treated)):
                if taus is not None:
                    what = {"set": name, "system": system, "technique": technique, "pair": pair}
                    rows.append(pd.DataFrame({**what, "tau": taus}))
    return pd.concat(rows[1:] or rows, ignore_index=True)


class Matrix(NamedTuple):
    """Mean τ between techniques, 1 on the diagonal; and where it is of one seed, for want of two.

    One model's techniques agree more than those of two models: such cells are not to be compared.
    """

    tau: pd.DataFrame
    one_seed: pd.DataFrame


def matrix(study: Study, where: str, system: str) -> Matrix:
    """Every technique taken of a system against every other."""
    names = [x for x in TECHNIQUES if (system, f"{where}/{x}") in measured(study)]
    tau = pd.DataFrame(np.eye(len(names)), index=names, columns=names)
    one_seed = pd.DataFrame(False, index=names, columns=names)
    for a, b in combinations(names, 2):
        pair = (f"{where}/{a}", f"{where}/{b}")
        taus = within_system(study, system, *pair, same_seed=False)
        if alone := taus is None:
            taus = within_system(study, system, *pair, same_seed=True)
        one_seed.loc[a, b] = one_seed.loc[b, a] = alone
        tau.loc[a, b] = tau.loc[b, a] = np.nan if taus is None else np.nanmean(taus)
    return Matrix(tau, one_seed)


def matrices(study: Study, where: str) -> dict[str, Matrix]:
    """`matrix` of every classifier."""
    return {system: matrix(study, where, system) for system in CLASSIFIERS}


def pairs_of(found: dict[str, Matrix], name: str) -> pd.DataFrame:
    """The pairs of techniques that were measured: set, system, a, b, tau, one_seed."""
    rows = [
        (name, system, a, b, of.tau.loc[a, b], of.one_seed.loc[a, b])
        for system, of in found.items()
        for a, b in combinations(of.tau.index, 2)
    ]
    return pd.DataFrame(rows, columns=["set", "system", "a", "b", "tau", "one_seed"])
