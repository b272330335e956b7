"""Does an explanation find the words that were planted? (metrics.md §16)"""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.data.planted import RULES, parts_of
from erlib.metrics.planted import found_at_k
from erlib.training.evaluations import Evaluation, evaluation


def _means(table: pd.DataFrame) -> dict[str, float]:
    found = table["found"]
    return {
        "found": float(found.mean()),
        "chance": float(table["chance"].mean()),
        "texts": float(found.notna().sum()),
    }


@evaluation("planted", version=1, summarise=_means, uses="word_scores")
def planted(this: Evaluation) -> pd.DataFrame:
    """`found` of each text, the share of its k planted words among the k best, and `chance`, k/n;
    both NaN of a text whose label nothing planted decides."""
    assert this.used is not None
    rule = parts_of(this.spec.data.corpus).rule
    if rule is None:
        raise ValueError(f"nothing is planted in {this.spec.data.corpus}")
    words = dict(zip(this.rows["id"], this.rows["words"], strict=True))
    k, rows = RULES[rule], []
    for row in this.used.itertuples():
        read = words[row.id][: len(row.scores)]
        found = found_at_k(read, np.abs(np.asarray(row.scores)), k)
        rows.append({"id": row.id, "found": found, "chance": found * 0 + k / len(read)})
    return pd.DataFrame(rows)
