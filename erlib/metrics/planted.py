"""Does a model use a planted reason, and does an explanation find it? (metrics.md §16)"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from erlib.data.planted import planted_words
from erlib.metrics.ranking import best

USES = 0.95  # of counterfactual pairs right: the model uses the rule


def found_at_k(words: Sequence[str], scores: np.ndarray, k: int) -> float:
    """The share of the k planted words that are among the k best; NaN of a text that has not k of
    them, a clean one or one whose word decides nothing.

    >>> found_at_k(["an", "indigo", "film"], np.array([0.1, 0.9, 0.3]), 1)
    1.0
    """
    places = planted_words(list(words))
    if len(places) != k:
        return float("nan")
    return float(best(np.asarray(scores), k)[places].mean())


def pairs_right(texts: pd.DataFrame, twins: pd.DataFrame) -> pd.Series:
    """By id, 1 where the model is right on a planted text and on its twin with the word of the
    other class. Rows of either: id, label, predicted; texts that have no twin are left out."""
    right = [(t["predicted"] == t["label"]).set_axis(t["id"]) for t in (texts, twins)]
    return (right[0].loc[twins["id"]] & right[1]).astype(float)
