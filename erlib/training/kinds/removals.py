"""What does the model lose by every set of a short text's words? (the bounds of normalised AOPC)"""

from __future__ import annotations

import pandas as pd

from erlib.metrics.normalised_aopc import MOST_WORDS, bounds, drops
from erlib.training.evaluations import Evaluation, evaluation

MOST_TEXTS = 50


def _count(table: pd.DataFrame) -> dict[str, float]:
    return {"texts": float(len(table))}


@evaluation("removals", version=1, summarise=_count)
def removals(this: Evaluation) -> pd.DataFrame:
    """One row for each of the first 50 texts of at most ten words: `drops`, [2^n], and the bounds
    `low` and `high` of AOPC. No explanation is read: they are the same for all of them."""
    short = [t for t in this.texts if sum(map(len, t.words)) <= MOST_WORDS and not all(t.special)]
    found = {text.id: drops(this.classifier, text) for text in short[:MOST_TEXTS]}
    low, high = zip(*map(bounds, found.values()), strict=True) if found else ((), ())
    return pd.DataFrame(
        {"id": list(found), "drops": [d.tolist() for d in found.values()], "low": low, "high": high}
    )
