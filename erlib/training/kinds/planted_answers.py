"""Does a model answer what a planted word says? (metrics.md §16)"""

from __future__ import annotations

import pandas as pd

from erlib.data.planted import OF_CLASS
from erlib.training.evaluations import Evaluation, evaluation


def _means(table: pd.DataFrame) -> dict[str, float]:
    against = table[table["said"].notna() & (table["said"] != table["label"])]
    return {
        "followed": float((against["predicted"] == against["said"]).mean()),
        "texts": float(len(against)),
    }


@evaluation("planted_answers", version=1, summarise=_means, uses="predictions")
def planted_answers(this: Evaluation) -> pd.DataFrame:
    """One row per text: its label, the class predicted and the class that a word of a class says
    (`said`), NaN where there is none."""
    assert this.used is not None
    words = dict(zip(this.rows["id"], this.rows["words"], strict=True))
    said = [
        next((float(OF_CLASS.index(w)) for w in words[name] if w in OF_CLASS), float("nan"))
        for name in this.used["id"]
    ]
    return this.used[["id", "label", "predicted"]].assign(said=said)
