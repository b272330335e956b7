"""Where does an explanation's order of words stand between the worst and the best of all orders?

AOPC of an order π of a text's n words, with drop(S) = p(x) − p(x without the words S):

    AOPC(π) = (1/n) Σ_{k=1..n} drop({π_1, …, π_k})                                      (1)

Its attainable range belongs to the model and the text: one model may fall by .9 whatever is
removed, another by .1 at most, so that plain values of two models say little beside each other
(Edin et al., ACL 2025). With low and high the least and largest AOPC of the n! orders,

    NAOPC(π) = (AOPC(π) − low) / (high − low)                                           (2)

Both bounds are exact: what is still to come depends on the set S that is gone and not on its order,

    best(S) = max_{j∉S} drop(S ∪ j) + best(S ∪ j),   best(all) = 0                      (3)

over 2^n sets, each asked once. A text of ten words has 1,024.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from erlib.data.encoding import Encoded
from erlib.metrics.erasure import Witness, erase, predicted, probability
from erlib.metrics.ranking import best_first
from erlib.models.classifier import Classifier

MOST_WORDS = 10


def drops(classifier: Classifier, text: Encoded) -> np.ndarray:
    """[2^n]: drop(S), the words of S being [PAD] in their places; bit j of the index is word j.

    p is the probability of the class that is predicted on the full text.
    """
    places = np.stack([text.segment, text.word_ids], axis=1)
    real = ~np.asarray(text.special)
    _, word = np.unique(places[real], axis=0, return_inverse=True)
    n = int(word.max()) + 1 if real.any() else 0
    if not 1 <= n <= MOST_WORDS:
        raise ValueError(f"text '{text.id}' has {n} words; the bounds are for 1 to {MOST_WORDS}")
    witness = Witness(classifier)
    kept = np.ones((2**n, len(real)), dtype=bool)
    kept[:, real] = (np.arange(2**n)[:, None] >> word) & 1 == 0
    answers = witness.ask([erase(text, row, "pad", witness.pad_id) for row in kept])
    target = predicted(answers[0])
    return probability(answers[0], target) - np.array([probability(a, target) for a in answers])


def aopc_of(drop: np.ndarray, scores: np.ndarray) -> float:
    """(1) of the words in descending order of their scores; of equal ones the earlier first."""
    gone = np.cumsum(1 << best_first(scores))
    return float(drop[gone].mean())


def bounds(drop: np.ndarray) -> tuple[float, float]:
    """(low, high): the least and the largest AOPC of all orders, by (3)."""
    n = len(drop).bit_length() - 1
    high, low = np.zeros(len(drop)), np.zeros(len(drop))
    for gone in range(len(drop) - 2, -1, -1):
        after = gone | (1 << np.flatnonzero((gone >> np.arange(n)) & 1 == 0))
        high[gone] = (drop[after] + high[after]).max()
        low[gone] = (drop[after] + low[after]).min()
    return float(low[0] / n), float(high[0] / n)


def normalised(drop: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """(2) with the best words removed first, which should be high, and with the worst first, low.

    NaN where all orders have the same AOPC: a text of one word, or of a model that does not look.
    """
    low, high = bounds(drop)
    if high - low < 1e-9:
        return float("nan"), float("nan")
    orders: Sequence[np.ndarray] = (scores, -np.asarray(scores))
    first, last = ((aopc_of(drop, s) - low) / (high - low) for s in orders)
    return first, last
