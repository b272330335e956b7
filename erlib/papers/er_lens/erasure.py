"""How much of a prediction rests on the tokens that a technique ranks first? (Figure 8)"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from erlib.metrics.faithfulness import area
from erlib.papers.cells import Read, Reading, Spec
from erlib.papers.study import Study

MEASURES = ("sufficiency", "comprehensiveness")


def erased(study: Study, specs: Sequence[Spec]) -> pd.DataFrame:
    """The table of the first of these, NaN for the texts that are left out: those that the model
    is no surer of than of the empty input, by any of the others.

    How long the empty input is depends on the technique, by the two specials: one that says so is
    enough, and the texts are the same for every technique.
    """
    own, *every = specs
    table, out = study.texts(own), left_out(study, every)
    gone = table["id"].isin(out)
    kept = {f"normalised_{m}": table[f"normalised_{m}"].mask(gone) for m in MEASURES}
    return table.assign(undefined=gone, **kept)


def left_out(study: Study, every: Sequence[Spec]) -> set[str]:
    """The texts that have nothing to normalise by."""

    def made() -> set[str]:
        tables = pd.concat([study.texts(spec) for spec in every])
        return set(tables.loc[tables["undefined"], "id"])

    return study.once(("left out", *every), made)


def areas(table: pd.DataFrame, measure: str) -> pd.Series:
    """[text] area under a measure's curve over the share of tokens, without what has none."""
    return area(table, f"normalised_{measure}").droplevel("method").dropna()


def area_under(measure: str) -> Read:
    """The mean of that area."""

    def read(study: Study, specs: Sequence[Spec]) -> Reading:
        texts = areas(erased(study, specs), measure)
        return Reading(float(texts.mean()), texts)

    return read


def erasure_curves(study: Study) -> pd.DataFrame:
    """Of the Baselines: kept (%), the means of both measures over the texts that are not left out,
    seed, technique, and how many texts those are (`texts`, `left_out`)."""
    rows = []
    for cell in study.of("figure-8"):
        if study.has(*cell.specs):
            table = erased(study, cell.specs)
            means = table.groupby("bin")[[f"normalised_{m}" for m in MEASURES]].mean()
            out = len(left_out(study, cell.specs[1:]))
            means = means.rename(columns={f"normalised_{m}": m for m in MEASURES})
            means = means.rename_axis("kept").reset_index()
            counts = {"texts": table["id"].nunique() - out, "left_out": out}
            rows.append(means.assign(seed=cell.seed, technique=cell.row, **counts))
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()
