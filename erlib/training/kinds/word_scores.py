"""How important is each word of the document, with its pieces summed?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.attributions import attribute_encoded
from erlib.training.evaluations import Evaluation, evaluation


def _count(table: pd.DataFrame) -> dict[str, float]:
    return {"texts": float(len(table))}


@evaluation("word_scores", version=1, summarise=_count)
def word_scores(this: Evaluation) -> pd.DataFrame:
    """One row per text: `scores`, one for each of its words up to the last that the model saw.

    Of a pair only the words of the first text, the document, are scored. A word without tokens
    (nothing but characters that the tokenizer drops) moved nothing and has score 0.
    """
    spec = this.spec
    found = attribute_encoded(
        this.classifier,
        this.texts,
        spec.method or "",
        variant=spec.variant,
        target=spec.target,
        level="word",
        seed=spec.seed,
        options=dict(spec.options),
    )
    rows = []
    for text, given in zip(this.texts, found, strict=True):
        document = np.asarray(given.segment) == 0
        words = np.asarray(given.word_ids)[document]
        scores = np.zeros(words.max() + 1)
        scores[words] = given.scores[document]
        rows.append({"id": text.id, "scores": scores.tolist()})
    return pd.DataFrame(rows)
