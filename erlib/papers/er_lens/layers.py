"""How plausible are the attributions of each layer? (Figures 4 and 13)"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pandas as pd

from erlib.papers.cells import Read, Reading, Spec
from erlib.papers.study import Study

# Those of Figure 4 below the top: layers 0, 4, 8 and 10 of twelve, as shares of the depth.
DEPTHS = {"0": Fraction(0), **{f"{n}/11": Fraction(n, 11) for n in (4, 8, 10)}}


def layer_auc(study: Study, spec: Spec) -> pd.DataFrame:
    """[text, layer] AUC x 100, NaN where a text has none; no column where there are no layers."""
    table = study.texts(spec)
    values = [[] if layers is None else layers for layers in table["layer_auc"]]
    return 100 * pd.DataFrame(np.array(values, dtype=np.float64), index=table["id"])


def at_depth(depth: Fraction) -> Read:
    """AUC x 100 of layer round(depth · (L − 1)) of L; NaN where that is the top one."""

    def read(study: Study, specs: Sequence[Spec]) -> Reading:
        found = layer_auc(study, specs[0])
        top = found.shape[1] - 1
        if round(depth * top) >= top:
            return Reading(float("nan"))
        texts = found[round(depth * top)].dropna()
        return Reading(float(texts.mean()), texts)

    return read


def layer_scores(study: Study, where: str) -> pd.DataFrame:
    """AUC x 100 of every layer on an annotated set: system, seed, technique, layer, value."""
    rows = []
    for cell in study.of("table9"):
        place, technique = cell.column.split("/")
        if place == where and study.has(*cell.specs):
            means = layer_auc(study, cell.specs[0]).mean().dropna()
            rows += [(cell.row, cell.seed, technique, i, value) for i, value in means.items()]
    return pd.DataFrame(rows, columns=["system", "seed", "technique", "layer", "value"])
