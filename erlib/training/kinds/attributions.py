"""Which tokens does an attribution method call important?"""

from __future__ import annotations

import pandas as pd

from erlib.attributions import attribute_encoded
from erlib.training.evaluations import Evaluation, evaluation


def _count(table: pd.DataFrame) -> dict[str, float]:
    return {"texts": float(len(table))}


@evaluation("attributions", version=1, summarise=_count, protocols=("layers",))
def attributions(this: Evaluation) -> pd.DataFrame:
    """One row per text, lists per token; `protocol="layers"` keeps every layer's scores too."""
    spec = this.spec
    scores = attribute_encoded(
        this.classifier,
        this.texts,
        spec.method or "",
        variant=spec.variant,
        target=spec.target,
        level=spec.level,
        per_layer=spec.protocol == "layers",
        seed=spec.seed,
        options=dict(spec.options),
    )
    rationales = [t.rationale for t in this.texts]
    return pd.DataFrame(
        {
            "id": [t.id for t in this.texts],
            "tokens": [s.tokens for s in scores],
            "special": [s.special for s in scores],
            "rationale": rationales if spec.level == "token" else [None] * len(scores),
            "scores": [s.scores.tolist() for s in scores],
            "layers": [None if s.layers is None else s.layers.tolist() for s in scores],
            "completeness_gap": [s.completeness_gap for s in scores],
        }
    )
