"""How many tokens does an explanation call important? (IvRA, Figure 7)"""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.metrics.faithfulness import THRESHOLDS
from erlib.metrics.faithfulness import important_share as measure
from erlib.training.evaluations import Evaluation, evaluation


def _summary(table: pd.DataFrame) -> dict[str, float]:
    """The mean over thresholds, and ERASER's AOPC of it: Σ / (9 + 1)."""
    share, bins = float(table["share"].mean()), len(THRESHOLDS)
    return {"share": share, "aopc": share * bins / (bins + 1), "texts": float(len(table))}


@evaluation("important_share", version=1, summarise=_summary, uses="attributions")
def important_share(this: Evaluation) -> pd.DataFrame:
    """One row per text: the share of its tokens, specials apart, above .1, .2 … .9 of the range."""
    assert this.used is not None
    shares = [
        measure(np.asarray(row.scores)[~np.asarray(row.special, dtype=bool)])
        for row in this.used.itertuples()
    ]
    return pd.DataFrame({"id": this.used["id"], "share": shares})
