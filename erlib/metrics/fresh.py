"""Which words are handed to a FRESH classifier as the rationale?

The support model scores the words; the classifier is trained on the k best alone (metrics.md §5).
Word scores are the sums of their pieces, as `erlib.attribute(level="word")` gives them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from datasets import Dataset

from erlib.data.schema import to_dataset
from erlib.errors import unknown
from erlib.metrics.ranking import at_least_one, best_first


def top_k(scores: np.ndarray, k: int, *, order: str = "document") -> list[int]:
    """Indices of the k best words, in the text's order (FRESH) or best first (SaLoss's code)."""
    if order not in ("document", "score"):
        raise unknown("order", order, ("document", "score"))
    chosen = best_first(scores)[:k]
    return (np.sort(chosen) if order == "document" else chosen).tolist()


def contiguous(scores: np.ndarray, k: int) -> list[int]:
    """Indices of the k adjacent words with the largest sum; the first such window on ties."""
    windows = np.lib.stride_tricks.sliding_window_view(np.asarray(scores, dtype=np.float64), k)
    start = int(windows.sum(axis=1).argmax())
    return list(range(start, start + k))


def rationale(
    words: Sequence[str],
    scores: np.ndarray,
    *,
    percent: int,
    extractor: str = "top_k",
    order: str = "document",
) -> list[str]:
    """The k = max(1, ceil(percent/100 · words)) words of the rationale, ready for `encode`."""
    if len(words) != len(scores):
        raise ValueError(f"{len(scores)} scores for {len(words)} words")
    k = at_least_one(percent, len(words))
    if extractor == "top_k":
        chosen = top_k(scores, k, order=order)
    elif extractor == "contiguous":
        chosen = contiguous(scores, k)
    else:
        raise unknown("extractor", extractor, ("top_k", "contiguous"))
    return [words[i] for i in chosen]


def extracted(
    texts: Dataset,
    scores: Sequence[np.ndarray],
    *,
    percent: int,
    extractor: str = "top_k",
    order: str = "document",
) -> Dataset:
    """The rows of a corpus with nothing but the rationale left of each text.

    `scores`: for each row, one per word that the support model saw; words cut off by its maximum
    length have none and are lost. Of a pair the second text, the query, is left as it is.
    """
    pair = "words_b" in texts.column_names
    rows = []
    for row, given in zip(texts.to_list(), scores, strict=True):
        words = row["words_a" if pair else "words"][: len(given)]
        kept = rationale(words, given, percent=percent, extractor=extractor, order=order)
        found = {"words_a": kept, "words_b": row["words_b"]} if pair else {"words": kept}
        rows.append({"id": row["id"], "label": row["label"], **found})
    return to_dataset(rows, "pair" if pair else "classify", texts.features["label"].names)
