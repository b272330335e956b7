"""Do four attribution methods say the same of a text? (Agreement, Tables 1 and 2)"""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.attributions import attribute_encoded, method
from erlib.attributions.spending import own_spending
from erlib.metrics.agreement import agreement as compare
from erlib.metrics.agreement import pair_means
from erlib.training.evaluations import Evaluation, evaluation

METHODS = ("deeplift", "deepshap", "gradshap", "integrated_gradients")


def _means(table: pd.DataFrame) -> dict[str, float]:
    """Texts, then pairs: the paper's single number, and how many values were undefined."""
    pairs = pair_means(table)
    return {
        "kendall": float(pairs["kendall"].mean()),
        "pearson": float(pairs["pearson"].mean()),
        "texts": float(table["id"].nunique()),
        "skipped": float(pairs["skipped"].sum()),
    }


# Another version of any of the methods is another version of their agreement.
@evaluation(
    "agreement",
    version=sum(method(m).version for m in METHODS),
    summarise=_means,
    methods=METHODS,
)
def agreement(this: Evaluation) -> pd.DataFrame:
    """One row per pair of methods and text: τ-b and r of the sizes of the real tokens' scores.

    `gap_a`, `gap_b` are the completeness gaps of the two methods. `variant="agreement"` explains in
    evaluation mode, "agreement_dropout" with dropout on, as the paper's code (agreement.md §4.1).
    """
    spec, texts = this.spec, this.texts
    real = [~np.array(text.special, dtype=bool) for text in texts]
    scores, gaps = {}, {}
    for name in METHODS:
        found = attribute_encoded(
            this.classifier,
            texts,
            name,
            variant=spec.variant,
            target=spec.target,
            level="token",
            seed=spec.seed,
            options=own_spending(dict(spec.options), name),
        )
        scores[name] = [a.scores[keep] for a, keep in zip(found, real, strict=True)]
        gaps[name] = {
            t.id: np.nan if a.completeness_gap is None else a.completeness_gap
            for t, a in zip(texts, found, strict=True)
        }
    table = compare(scores, ids=[text.id for text in texts])
    for side in ("a", "b"):
        pairs = zip(table[f"method_{side}"], table["id"], strict=True)
        table[f"gap_{side}"] = [gaps[name][text] for name, text in pairs]
    return table
