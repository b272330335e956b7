"""How are layers read (Figures 4 and 13), and what rests on the tokens ranked first (Figure 8)?"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pandas as pd

from erlib.metrics.faithfulness import area
from erlib.papers.cells import Read, Spec, mean_over
from erlib.papers.study import Study, made_once

# Those of Figure 4 below the top: layers 0, 4, 8 and 10 of twelve, as shares of the depth.
DEPTHS = {"0": Fraction(0), **{f"{n}/11": Fraction(n, 11) for n in (4, 8, 10)}}
MEASURES = ("sufficiency", "comprehensiveness")
NORMALISED = {f"normalised_{measure}": measure for measure in MEASURES}


def layer_auc(study: Study, spec: Spec) -> pd.DataFrame:
    """[text, layer] AUC x 100, NaN where a text has none; no column where there are no layers."""
    table = study.texts(spec)
    values = [[] if layers is None else layers for layers in table["layer_auc"]]
    return 100 * pd.DataFrame(np.array(values, dtype=np.float64), index=table["id"])


def at_depth(depth: Fraction) -> Read:
    """AUC x 100 of layer round(depth · (L − 1)) of L; NaN where that is the top one."""

    def texts(study: Study, specs: Sequence[Spec]) -> pd.Series:
        found = layer_auc(study, specs[0])
        top = found.shape[1] - 1
        layer = round(depth * top)
        return found[layer] if layer < top else pd.Series(dtype=float)

    return mean_over(texts)


def layer_scores(study: Study, where: str) -> pd.DataFrame:
    """AUC x 100 of every layer on an annotated set: system, seed, technique, layer, value."""
    rows = []
    for cell in study.finished("table9"):
        place, technique = cell.column.split("/")
        if place == where:
            means = layer_auc(study, cell.specs[0]).mean().dropna()
            rows += [(cell.row, cell.seed, technique, i, value) for i, value in means.items()]
    return pd.DataFrame(rows, columns=["system", "seed", "technique", "layer", "value"])


def erased(study: Study, specs: Sequence[Spec]) -> pd.DataFrame:
    """The table of the first of these, NaN for the texts that are left out: those that the model
    is no surer of than of the empty input, by any of the others.

    How long the empty input is depends on the technique, by the two specials: one that says so is
    enough, and the texts are the same for every technique.
    """
    table = study.texts(specs[0])
    gone = table["id"].isin(left_out(study, tuple(specs[1:])))
    return table.assign(undefined=gone, **{name: table[name].mask(gone) for name in NORMALISED})


@made_once
def left_out(study: Study, every: tuple[Spec, ...]) -> set[str]:
    """The texts that have nothing to normalise by."""
    tables = pd.concat([study.texts(spec) for spec in every])
    return set(tables.loc[tables["undefined"], "id"])


def areas(table: pd.DataFrame, measure: str) -> pd.Series:
    """[text] area under a measure's curve over the share of tokens, without what has none."""
    return area(table, f"normalised_{measure}").droplevel("method").dropna()


def area_under(measure: str) -> Read:
    """The mean of that area."""
    return mean_over(lambda study, specs: areas(erased(study, specs), measure))


def erasure_curves(study: Study) -> pd.DataFrame:
    """Of the Baselines: kept (%), the means of both measures over the texts that are not left out,
    seed, technique, and how many texts those are (`texts`, `left_out`)."""
    columns = ["kept", *MEASURES, "seed", "technique", "texts", "left_out"]
    curves = [pd.DataFrame(columns=columns, dtype=float)]
    for cell in study.finished("figure-8"):
        table, out = erased(study, cell.specs), len(left_out(study, cell.specs[1:]))
        means = table.groupby("bin")[list(NORMALISED)].mean().rename(columns=NORMALISED)
        counts = {"texts": table["id"].nunique() - out, "left_out": out}
        means = means.rename_axis("kept").reset_index()
        curves.append(means.assign(seed=cell.seed, technique=cell.row, **counts))
    return pd.concat(curves[1:] or curves, ignore_index=True)
