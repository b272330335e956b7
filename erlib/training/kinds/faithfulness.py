"""Does the model rely on the tokens that its explanation ranks first?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.metrics.faithfulness import PROTOCOLS, aopc, bin_mean
from erlib.metrics.faithfulness import faithfulness as measure
from erlib.training.evaluations import Evaluation, evaluation

MEASURES = (
    "sufficiency",
    "comprehensiveness",
    "normalised_sufficiency",
    "normalised_comprehensiveness",
)


def _summary(table: pd.DataFrame) -> dict[str, float]:
    """Of each measure the AOPC (Σ over bins / (bins + 1)) and, as `…_mean`, the plain mean."""
    values = {name: float(aopc(table, name).mean()) for name in MEASURES}
    means = {f"{name}_mean": float(bin_mean(table, name).mean()) for name in MEASURES}
    return {
        **values,
        **means,
        "undefined": float(table["undefined"].mean()),
        "texts": float(table["id"].nunique()),
    }


@evaluation(
    "faithfulness",
    version=2,
    summarise=_summary,
    uses="attributions",
    protocols=tuple(PROTOCOLS),
)
def faithfulness(this: Evaluation) -> pd.DataFrame:
    """Sufficiency and comprehensiveness by the paper's `protocol`, one row per text and bin.

    The columns are those of `erlib.metrics.faithfulness`.
    """
    spec = this.spec
    assert this.used is not None
    if spec.level != "token":
        raise ValueError(f"tokens are erased, not words: level must be 'token', not '{spec.level}'")
    scores = [np.asarray(s, dtype=np.float64) for s in this.used["scores"]]
    name = spec.method or ""
    return measure(this.classifier, this.texts, {name: scores}, protocol=spec.protocol or "")
