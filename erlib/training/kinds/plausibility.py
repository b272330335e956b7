"""How well do a model's attributions agree with the annotated rationale?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.data.encoding import Encoded
from erlib.metrics.plausibility import auc, average_precision, recall_at_k
from erlib.training.evaluations import Evaluation, evaluation


def _plausibility_summary(table: pd.DataFrame) -> dict[str, float]:
    names = ("auc", "average_precision", "recall_at_k")
    means = {name: float(table[name].mean()) for name in names}
    return {**means, "texts": float(len(table)), "skipped": float(table["auc"].isna().sum())}


@evaluation(
    "plausibility",
    version=1,
    summarise=_plausibility_summary,
    uses="attributions",
    protocols=("layers", "ivra"),
)
def plausibility(this: Evaluation) -> pd.DataFrame:
    """AUC, average precision and recall@k per text; |score| ranks the tokens of signed methods.

    With `protocol="layers"` also `layer_auc`, one AUC per layer. With `protocol="ivra"` words are
    ranked, by the sum of their pieces, and specials take no part.
    """
    assert this.used is not None
    rows = []
    for i, row in enumerate(this.used.itertuples()):
        if row.rationale is None:
            raise ValueError(f"{this.spec.data.corpus} has no rationales to compare with")
        scores, rationale = np.asarray(row.scores), np.asarray(row.rationale)
        if this.spec.protocol == "ivra":
            scores, rationale = by_word(this.texts[i], scores, rationale)
        scores = np.abs(scores)
        rows.append(
            {
                "id": row.id,
                "auc": auc(scores, rationale),
                "average_precision": average_precision(scores, rationale),
                "recall_at_k": recall_at_k(scores, rationale),
                "layer_auc": None
                if row.layers is None
                else [auc(np.abs(layer), row.rationale) for layer in row.layers],
            }
        )
    return pd.DataFrame(rows)


def by_word(
    text: Encoded, scores: np.ndarray, rationale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Scores summed over the pieces of each word, and whether the word is in the rationale."""
    real = ~np.asarray(text.special)
    words = np.stack([text.segment, text.word_ids], axis=1)[real]
    _, word = np.unique(words, axis=0, return_inverse=True)
    pieces = np.bincount(word, weights=rationale[real])
    return np.bincount(word, weights=scores[real]), (pieces > 0).astype(int)
