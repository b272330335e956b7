"""Which tokens are the k best, and how many is k?"""

from __future__ import annotations

import numpy as np


def share(percent: int, n: int) -> tuple[int, int]:
    """(floor, ceil) of percent/100 · n, in integers: 7 % of 100 is 7, where .07·100 rounds up."""
    return percent * n // 100, -(-percent * n // 100)


def at_least_one(percent: int, n: int) -> int:
    """max(1, ceil(percent/100 · n)), but never more than n."""
    return min(n, max(1, share(percent, n)[1]))


def best_first(scores: np.ndarray) -> np.ndarray:
    """Indices by descending score; of equal scores the earlier token is the better one."""
    return np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")


def best(scores: np.ndarray, k: int) -> np.ndarray:
    """[token] bool: the k best."""
    chosen = np.zeros(len(scores), dtype=bool)
    chosen[best_first(scores)[:k]] = True
    return chosen
