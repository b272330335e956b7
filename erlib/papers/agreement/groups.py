"""Do methods agree more on ambiguous texts than on easy ones? (Table 4)

A text belongs to a group by how often the run itself classified it correctly. Texts whose
agreement was measured are those of the explained rows.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import combine_pvalues, mannwhitneyu

from erlib.metrics.cartography import GROUPS
from erlib.metrics.stats import holm, signed_rank_p
from erlib.papers.agreement.study import Study, labels

FEWEST = 3  # texts on each side of a test


def grouped(study: Study, model: str) -> pd.DataFrame:
    """One row per explained text of every Base and Tying run: its group, τ and r."""
    tables = []
    for run in study.compared(model).itertuples():
        texts = study.text_means(run.spec).join(study.map_of(run.spec)["group"])
        tables.append(texts.reset_index().assign(**labels(run)))
    return pd.concat(tables, ignore_index=True)


def group_tests(study: Study, model: str) -> pd.DataFrame:
    """For each set: Amb over Easy within a variant, Tying over Base within a group; p by Holm.

    Mann-Whitney for the first (other texts), the signed-rank test for the second (the texts of
    Base's group under both models); one-sided, per seed, combined by Stouffer's method. A seed with
    fewer than three texts on a side has no test. `trained`: are all models of the test?
    """
    texts = grouped(study, model).dropna(subset=["pearson"])
    rows = []
    for task in study.tasks:
        for variant in ("Base", "Tying"):
            cell = texts[(texts["set"] == task.paper) & (texts["variant"] == variant)]
            row = {"set": task.paper, "test": f"Amb > Easy, {variant}"}
            row["trained"] = study.all_trained(model, task.paper, variant)
            rows.append({**row, **combined(ambiguous_over_easy(cell))})
        for group in GROUPS:
            row = {"set": task.paper, "test": f"Tying > Base, {group}"}
            row["trained"] = study.all_trained(model, task.paper, "Base", "Tying")
            rows.append({**row, **combined(tying_over_base(study, model, task.paper, group))})
    table = pd.DataFrame(rows)
    tested = table["p"].notna()
    table.loc[tested, "p (Holm)"] = holm(table.loc[tested, "p"]) if tested.any() else []
    return table


def ambiguous_over_easy(cell: pd.DataFrame) -> list[float]:
    """One p for each seed that has enough texts in both groups."""
    ps = []
    for _, seed in cell.groupby("seed"):
        amb, easy = (seed.loc[seed["group"] == g, "pearson"] for g in ("Amb", "Easy"))
        if min(len(amb), len(easy)) >= FEWEST:
            ps.append(float(mannwhitneyu(amb, easy, alternative="greater").pvalue))
    return ps


def tying_over_base(study: Study, model: str, paper: str, group: str) -> list[float]:
    """One p for each seed that has enough texts in Base's group."""
    ps = []
    for base, tying in study.paired(model, paper, "Base", "Tying"):
        gain = study.text_means(tying)["pearson"] - study.text_means(base)["pearson"]
        members = study.map_of(base)["group"].reindex(gain.index) == group
        gain = gain[members].dropna()
        if len(gain) >= FEWEST:
            ps.append(signed_rank_p(gain, "greater"))
    return ps


def combined(ps: list[float]) -> dict[str, float]:
    """How many seeds were tested, and Stouffer's combination of their p; NaN of none."""
    if not ps:
        return {"seeds": 0, "p": float("nan")}
    bounded = np.clip(ps, 1e-300, 1 - 1e-16)
    return {
        "seeds": len(ps),
        "p": float(combine_pvalues(bounded, method="stouffer").pvalue),
    }
