"""What does the answer to masked copies of a text say?"""

from __future__ import annotations

from math import comb

import numpy as np
from sklearn.linear_model import Ridge

from erlib.attributions.masked_copies import Ask, by_word
from erlib.attributions.registry import Request, Scores, register

KERNEL_WIDTH = 25.0  # lime_text's, for cosine distances times 100


@register(
    "lime",
    signed=True,
    scope="global",
    differentiable=False,
    needs=("predictions",),
    version=1,
    spends="samples",
)
def lime(request: Request) -> Scores:
    """Ridge regression on masked copies of the text, a word being a feature.

    The first line says what; here is how. As lime_text samples: one copy is whole, the others lose
    a number of words drawn from 1 … n, and count by an exponential kernel on 100 × cosine distance
    to the whole text. A removed word becomes [PAD], piece by piece, with mask and positions kept;
    specials stay. Every place is a feature of its own, even if a word occurs twice. Texts with
    fewer masks than samples are not sampled: each mask counts as often as it would be drawn on
    average. Token scores share a word's coefficient equally between its pieces; specials get 0.
    """

    def coefficients(n: int, seed: int, ask: Ask) -> np.ndarray:
        masks, counts = drawn_masks(n, request.options.samples, np.random.default_rng(seed))
        return ridge(masks, ask(masks), counts)

    return Scores(by_word(request, coefficients))


def drawn_masks(
    n: int, samples: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct masks [mask, word] of kept words, and how often each was drawn.

    All 2^n masks with their expected counts, if there are fewer of them than samples.
    """
    if 2**n <= samples:
        masks = (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1
        removed = n - masks.sum(axis=1)
        draws = np.array([0.0] + [(samples - 1) / (n * comb(n, k)) for k in range(1, n + 1)])
        return masks, draws[removed] + (removed == 0)
    masks = np.ones((samples, n), dtype=bool)
    for mask, k in zip(masks[1:], generator.integers(1, n + 1, samples - 1), strict=True):
        mask[generator.choice(n, k, replace=False)] = False
    distinct, counts = np.unique(masks, axis=0, return_counts=True)
    return distinct, counts.astype(float)


def ridge(masks: np.ndarray, answers: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """[word] coefficients of lime_text's weighted ridge regression (α = 1, with intercept)."""
    kept = masks.mean(axis=1)
    distance = 100 * (1 - np.sqrt(kept))  # cosine to the whole text is √(share of words kept)
    kernel = np.sqrt(np.exp(-(distance**2) / KERNEL_WIDTH**2))
    model = Ridge(alpha=1.0).fit(masks.astype(float), answers, sample_weight=kernel * counts)
    return model.coef_
