"""How well do a model's word scores agree with the annotated rationale?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.metrics.plausibility import auc, average_precision, iou_f1, token_f1
from erlib.training.evaluations import Evaluation, evaluation

MEASURES = ("auc", "average_precision", "token_f1", "iou_f1")


def _means(table: pd.DataFrame) -> dict[str, float]:
    means = {name: float(table[name].mean()) for name in MEASURES}
    return {**means, "texts": float(table["auc"].notna().sum())}


@evaluation("word_plausibility", version=1, summarise=_means, uses="word_scores")
def word_plausibility(this: Evaluation) -> pd.DataFrame:
    """One row per text; the sizes of scores rank words, and specials take no part.

    A hard rationale is the best words, as large a share of a text as rationales are of the texts
    that are measured with it (256 at a time). NaN of a text without a rationale.
    """
    assert this.used is not None
    if "rationale" not in this.rows.column_names:
        raise ValueError(f"{this.spec.data.corpus} has no rationales to compare with")
    marks = dict(zip(this.rows["id"], this.rows["rationale"], strict=True))
    texts = [
        (row.id, np.abs(np.asarray(row.scores)), np.asarray(marks[row.id] or [])[: len(row.scores)])
        for row in this.used.itertuples()
    ]
    shares = [marked.mean() for _, _, marked in texts if marked.any()]
    rows = []
    for name, sizes, marked in texts:
        values = dict.fromkeys(MEASURES, float("nan"))
        if len(marked) == len(sizes):
            k = max(1, round(float(np.mean(shares)) * len(sizes))) if shares else 1
            values = {
                "auc": auc(sizes, marked),
                "average_precision": average_precision(sizes, marked),
                "token_f1": token_f1(sizes, marked, k),
                "iou_f1": iou_f1(sizes, marked, k),
            }
        rows.append({"id": name, **values})
    return pd.DataFrame(rows)
