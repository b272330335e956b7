"""Which parts of speech does the model find important?"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import softmax

from erlib.data.parts_of_speech import TAGGERS, installed_tagger, tag_words
from erlib.training.evaluations import Evaluation, evaluation


def _count(table: pd.DataFrame) -> dict[str, float]:
    return {"texts": float(len(table))}


@evaluation(
    "parts_of_speech",
    version=1,
    summarise=_count,
    uses="attributions",
    protocols=tuple(TAGGERS),
)
def parts_of_speech(this: Evaluation) -> pd.DataFrame:
    """One row per text, lists per document word: `words`, `tags` and `scores`.

    A word's score is the sum over its pieces of the softmax, over the document's tokens, of the
    attribution divided by its absolute sum. (saloss.md §4.7 and 4.16; the reference divides by
    the signed sum, which turns the order round where it is negative.) Words that the model did not
    see are left out. `protocol` is the tagger, or the one that is installed.
    """
    assert this.used is not None
    rows, tagger = [], this.spec.protocol or installed_tagger()
    for text, given in zip(this.texts, this.used["scores"], strict=True):
        document = np.asarray(text.segment) == 0
        attribution = np.asarray(given, dtype=np.float64)[document]
        weights = softmax(attribution / (np.abs(attribution).sum() or 1.0))
        scores = np.bincount(np.asarray(text.word_ids)[document], weights=weights)
        words = text.words[0][: len(scores)]
        tags = tag_words(text.words[0], tagger)[: len(scores)]
        rows.append({"id": text.id, "words": words, "tags": tags, "scores": scores.tolist()})
    return pd.DataFrame(rows)
