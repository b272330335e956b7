"""Do explanations survive another initialisation, and predictions an attack?

Jaccard@25 % of the best tokens in two models (metrics.md §6), and the statistics of an attack as
REGEX's Table 6 counts them (metrics.md §11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from erlib.metrics.ranking import at_least_one, best


def jaccard(a: Sequence[np.ndarray], b: Sequence[np.ndarray], *, percent: int = 25) -> np.ndarray:
    """[text] |A ∩ B| / |A ∪ B| of the m = max(1, ceil(percent/100 · n)) best tokens in two models.

    `a` and `b` hold each text's scores without specials. Chance gives about 1/7 at 25 %.
    """
    if len(a) != len(b):
        raise ValueError(f"scores of {len(a)} and of {len(b)} texts")
    return np.array([_jaccard(x, y, percent) for x, y in zip(a, b, strict=True)])


def _jaccard(a: np.ndarray, b: np.ndarray, percent: int) -> float:
    if np.shape(a) != np.shape(b):
        raise ValueError(f"scores of shape {np.shape(a)} and {np.shape(b)} for the same text")
    m = at_least_one(percent, len(a))
    first, second = best(a, m), best(b, m)
    return float((first & second).sum() / (first | second).sum())


@dataclass(frozen=True)
class Attack:
    """What an attack did. Shares are in [0, 1]; success is of the originally correct texts."""

    texts: int
    correct: int
    successes: int

    @property
    def original_accuracy(self) -> float:
        """Before the attack, over all texts."""
        return self.correct / self.texts

    @property
    def accuracy_under_attack(self) -> float:
        """(correct − flipped) / texts."""
        return (self.correct - self.successes) / self.texts

    @property
    def success_rate(self) -> float:
        """flipped / originally correct; NaN if none was correct."""
        return self.successes / self.correct if self.correct else float("nan")


def attack(gold: np.ndarray, before: np.ndarray, after: np.ndarray) -> Attack:
    """Count an attack from [text] predictions before and after it.

    A text that was wrong before is not attacked: its prediction after it does not count.
    """
    gold, before, after = np.asarray(gold), np.asarray(before), np.asarray(after)
    if not gold.shape == before.shape == after.shape:
        raise ValueError(f"{gold.shape} labels, predictions of {before.shape} and {after.shape}")
    correct = before == gold
    return Attack(len(gold), int(correct.sum()), int((correct & (after != before)).sum()))
