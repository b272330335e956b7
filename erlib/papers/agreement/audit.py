"""What would have come out if the models had been explained and trained as the paper's code did?

Each departure is a switch (agreement.md §4.1 to 4.4 and 4.11). `here` is this notebook, `switched`
the same with the one switch turned.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from erlib.config import RunSpec
from erlib.papers.agreement.study import SAME, Study
from erlib.papers.agreement.systems import AUDITED, System
from erlib.papers.agreement.tables import mean_agreement
from erlib.reports.paper_numbers import paper_table

EXPLAINING, PREDICTING = "dropout while explaining", "dropout while predicting"
SIX = "r, all six pairs"
ONE = "r, DeepLIFT and D-SHAP"


def audit(study: Study) -> pd.DataFrame:
    """One row per switch, system, set and measure.

    Dropout while explaining: the kept model, on equal texts. While predicting: the maps' means.
    The others: the last epoch of a run that was trained with the switch.
    """
    rows = [*_explaining(study), *_predicting(study), *_training(study)]
    table = pd.DataFrame(rows)
    table.insert(6, "change", table["switched"] - table["here"])
    return table


def _row(
    switch: str,
    system: str,
    paper: str,
    measure: str,
    values: Sequence[tuple[float, ...]],
    printed: float,
) -> dict[str, object]:
    """`values`: (here, switched) of each seed."""
    here, switched = np.mean(values, axis=0)
    return {
        "switch": switch,
        "system": system,
        "set": paper,
        "measure": measure,
        "here": here,
        "switched": switched,
        "paper": printed,
        "seeds": len(values),
    }


def _explaining(study: Study) -> list[dict[str, object]]:
    """For every variant of the Transformer: DeepLIFT with DeepSHAP, and the mean of six pairs."""
    pairs = _printed("table1b_dbert")
    means = _printed("table2")
    rows = []
    runs = study.main[study.main["model"] == "DBERT"]
    for (paper, variant), group in runs.groupby(["set", "variant"], sort=False):
        both = [dropout_pair(study, spec) for spec in group["spec"]]
        one = pairs[SAME, paper] if variant == "Base" else np.nan
        for measure, printed in ((ONE, one), (SIX, means[f"DBERT|{paper}", variant])):
            values = [(off[measure], on[measure]) for off, on in both]
            rows.append(_row(EXPLAINING, f"DBERT {variant}", paper, measure, values, printed))
    return rows


def dropout_pair(study: Study, spec: RunSpec) -> tuple[dict[str, float], dict[str, float]]:
    """r of the kept model without and with dropout, on equal texts."""
    on = study.with_dropout(spec)
    off = study.by_text(spec, study.kept[spec])
    tables = (off[off["id"].isin(on["id"])], on)
    means = [table.groupby("pair", sort=False)["pearson"].mean() for table in tables]
    first, second = ({ONE: float(m[SAME]), SIX: float(m.mean())} for m in means)
    return first, second


def _predicting(study: Study) -> list[dict[str, object]]:
    """Means of the Transformer's maps, where they were also made with dropout on."""
    rows = []
    for task in study.tasks:
        specs = [
            spec
            for spec in study.runs_of("DBERT", task.paper, "Base").values()
            if len(spec.each_epoch) > 2
        ]
        for attribute in ("confidence", "variability") if specs else ():
            values = [
                (
                    float(study.map_of(spec)[attribute].mean()),
                    float(study.map_of(spec, dropout=True)[attribute].mean()),
                )
                for spec in specs
            ]
            rows.append(_row(PREDICTING, "DBERT Base", task.paper, attribute, values, np.nan))
    return rows


def _training(study: Study) -> list[dict[str, object]]:
    """The mean of six pairs of runs that were trained with another regulariser."""
    means = _printed("table2")
    rows = []
    for variant in AUDITED:
        plain, switch = variant.split(", ")
        for task in study.tasks:
            values = [
                tuple(mean_agreement(study, spec)["pearson_r"] for spec in pair)
                for pair in study.paired("DBERT", task.paper, plain, variant)
            ]
            if values:
                weight = study.weight(System("DBERT", task, variant))
                name = f"{plain.lower()}: {switch} (λ {weight:g})"
                printed = means[f"DBERT|{task.paper}", plain]
                rows.append(_row(name, f"DBERT {plain}", task.paper, SIX, values, printed))
    return rows


def _printed(table: str) -> pd.Series:
    """The paper's Pearson's r by row and column."""
    cells = paper_table("agreement", table).query("metric == 'pearson_r'")
    return cells.set_index(["row", "column"])["mean"]
