"""What is each word's fair share of the difference between the whole text and an empty one?

The Shapley value averages what a word adds over all orders in which words may join. Kernel SHAP
(Lundberg and Lee, 2017) finds it as a regression: of all φ with

    Σ_i φ_i = f(whole) − f(empty)                                                  (1)

the one that minimises Σ_S π(S) (f(S) − f(empty) − Σ_{i∈S} φ_i)² over sets S of kept words, where

    π(S) = (n − 1) / (C(n, |S|) |S| (n − |S|))                                     (2)

is infinite for none and all of the words, which (1) is for. Over all 2^n sets φ is exact.
"""

from __future__ import annotations

from math import comb

import numpy as np
import torch

from erlib.attributions.masked_copies import Ask, by_word
from erlib.attributions.registry import Request, Scores, register

MOST_ENUMERATED = 10  # words; 1,024 sets


@register(
    "shap",
    signed=True,
    scope="global",
    differentiable=False,
    needs=("predictions",),
    version=1,
    spends="samples",
)
def shap(request: Request) -> Scores:
    """Kernel SHAP on masked copies: each word's Shapley value, exact for up to ten words.

    A longer text has `samples` sets drawn, half of them by (2) and half their complements. The
    scores add up to f(whole) − f(empty) in both cases.
    """
    gaps: list[float] = []

    def values(n: int, seed: int, ask: Ask) -> np.ndarray:
        masks, weights = coalitions(n, request.options.samples, np.random.default_rng(seed))
        ends = np.array([[False] * n, [True] * n])
        empty, whole, *answers = ask(np.concatenate([ends, masks]))
        found = constrained(masks, np.asarray(answers) - empty, weights, whole - empty)
        gaps.append(found.sum() - (whole - empty))
        return found

    return Scores(by_word(request, values), completeness_gap=torch.tensor(gaps))


def coalitions(
    n: int, samples: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct sets [set, word] of kept words, neither none nor all, and what each counts."""
    if n <= MOST_ENUMERATED:
        masks = (np.arange(1, 2**n - 1)[:, None] >> np.arange(n)) & 1 == 1
        by_size = np.array([0.0] + [(n - 1) / (comb(n, k) * k * (n - k)) for k in range(1, n)])
        return masks, by_size[masks.sum(axis=1)]  # eq. 2
    sizes = np.arange(1, n)
    chances = 1 / (sizes * (n - sizes))  # eq. 2, of all sets of a size together
    drawn = generator.choice(sizes, -(-samples // 2), p=chances / chances.sum())
    masks = np.zeros((len(drawn), n), dtype=bool)
    for mask, k in zip(masks, drawn, strict=True):
        mask[generator.choice(n, k, replace=False)] = True
    distinct, counts = np.unique(np.concatenate([masks, ~masks]), axis=0, return_counts=True)
    return distinct, counts.astype(float)


def constrained(
    masks: np.ndarray, answers: np.ndarray, weights: np.ndarray, total: float
) -> np.ndarray:
    """φ [word]: weighted least squares of the answers on the masks, under Σ φ = total.

    With A = Σ π m mᵀ, b = Σ π m y and the multiplier λ of (1): A φ + λ 1 = b and 1ᵀ φ = total. Of
    several solutions, where too few sets were drawn, the smallest.
    """
    n = masks.shape[1]
    weighted = masks * weights[:, None]
    equations = np.zeros((n + 1, n + 1))
    equations[:n, :n], equations[:n, n], equations[n, :n] = weighted.T @ masks, 1, 1
    known = np.append(weighted.T @ answers, total)
    return np.linalg.lstsq(equations, known, rcond=None)[0][:n]
