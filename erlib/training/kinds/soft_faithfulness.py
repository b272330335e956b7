"""Does the model rely on tokens in proportion to their scores?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.metrics.soft_erasure import soft_erasure
from erlib.training.evaluations import Evaluation, evaluation

MEASURES = ("soft_sufficiency", "soft_comprehensiveness")


def _means(table: pd.DataFrame) -> dict[str, float]:
    means = {name: float(table[name].mean()) for name in MEASURES}
    return {**means, "texts": float(table[MEASURES[0]].notna().sum())}


@evaluation("soft_faithfulness", version=1, summarise=_means, uses="attributions")
def soft_faithfulness(this: Evaluation) -> pd.DataFrame:
    """Soft sufficiency and comprehensiveness, one row per text; NaN where the model likes the text
    no better than none."""
    assert this.used is not None
    if this.spec.level != "token":
        raise ValueError(f"tokens are thinned, so level must be 'token', not '{this.spec.level}'")
    scores = [np.asarray(s, dtype=np.float64) for s in this.used["scores"]]
    found = soft_erasure(this.classifier, this.texts, scores, seed=this.spec.seed)
    return pd.DataFrame(found, columns=list(MEASURES)).assign(id=[t.id for t in this.texts])
