"""Has a model learnt its task, or are its answers no better than chance and habit?

Each function gives the p-value of "nothing learnt"; a model counts as trained below `LEVEL`. Both
parts of a rule with two tests must be below it, so the larger p decides and needs no correction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, random_table

from erlib.metrics.task import majority_share

LEVEL = 0.01
FEWEST = 100  # texts to judge by, where there are as many
EVEN = 0.6  # where one class has more of the texts, accuracy says little and is not asked for
PERMUTATIONS = 999


def classes_p(gold: ArrayLike, predicted: ArrayLike) -> float:
    """Macro-F1 above permuted predictions' and, of even classes, accuracy above the majority's."""
    gold, predicted = np.asarray(gold, dtype=np.int64), np.asarray(predicted, dtype=np.int64)
    p, majority = permuted_f1_p(gold, predicted), majority_share(gold)
    if majority > EVEN:
        return p
    return max(p, above_share_p(int((gold == predicted).sum()), gold.size, majority))


def spans_p(gold: ArrayLike, found: ArrayLike) -> float:
    """Exact matches of (start, end) above the best constant answer's, rows [text, (start, end)].

    The constant is the best for these very texts. A start of −1 is an answer that was cut off:
    nobody finds it.
    """
    gold, found = np.asarray(gold), np.asarray(found)
    there = gold[:, 0] >= 0
    counts = np.unique(gold[there], axis=0, return_counts=True)[1]
    hits = int(((gold == found).all(axis=1) & there).sum())
    return above_share_p(hits, len(gold), counts.max(initial=0) / len(gold))


def permuted_f1_p(gold: NDArray[np.int64], predicted: NDArray[np.int64]) -> float:
    """P(macro-F1 of permuted predictions ≥ that of these), (1 + hits) / (1 + permutations).

    Permuting leaves both margins of the confusion matrix, and with them the denominators of F1.
    """
    names, (rows, columns) = np.unique(np.stack([gold, predicted]), return_inverse=True)
    counts = np.bincount(rows * names.size + columns, minlength=names.size**2)
    confusion = counts.reshape(names.size, names.size)  # [gold, predicted]
    margins = confusion.sum(axis=1), confusion.sum(axis=0)
    drawn = random_table(*margins).rvs(PERMUTATIONS, random_state=0)

    def f1(tables: NDArray[np.int64]) -> NDArray[np.float64]:
        return (2 * np.diagonal(tables, axis1=-2, axis2=-1) / sum(margins)).mean(axis=-1)

    hits = int((f1(drawn) >= f1(confusion) - 1e-12).sum())
    return (1 + hits) / (1 + PERMUTATIONS)


def above_share_p(hits: int, texts: int, share: float) -> float:
    """P(at least `hits` of `texts` right) if each is right with probability `share` (binomial)."""
    return float(binom.sf(hits - 1, texts, share))
