"""Does a model rely on words in proportion to their scores, when none is erased whole?

Soft sufficiency and comprehensiveness (Zhao and Aletras, ACL 2023): every dimension of a word's
embedding is kept with a probability that follows the word's score a in [0, 1],

    x' = x ⊙ Bernoulli(a)       what the explanation calls important stays              (1)
    x' = x ⊙ Bernoulli(1 − a)   what it calls important goes                            (2)

    Soft-NS = max(0, S(x') − S0) / (1 − S0),  S(x') = 1 − max(0, p(x) − p(x')) at (1)   (3)
    Soft-NC = max(0, p(x) − p(x')) / (1 − S0) at (2), at most 1                         (4)

with S0 = S(0), no word being left. Every token counts and no k is chosen, so that the
measure does not hang on bins.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from erlib.data.encoding import Encoded
from erlib.metrics.erasure import predicted, probabilities, probability
from erlib.models.classifier import Classifier

DRAWS = 10  # of the masks of a text, of which the mean is taken
GUARD = 1e-4  # 1 − S0 must be above it, as for the erasing pair


def soft_erasure(
    classifier: Classifier, encoded: Sequence[Encoded], scores: Sequence[np.ndarray], seed: int = 0
) -> list[tuple[float, float]]:
    """(Soft-NS, Soft-NC) of each text; NaN where the model likes the text no better than none.

    `scores`: one signed number per token; those of specials are not read, and specials stay.
    """
    classifier.eval()
    return [
        _of_text(classifier, text, one, seed) for text, one in zip(encoded, scores, strict=True)
    ]


@torch.no_grad()
def _of_text(
    classifier: Classifier, text: Encoded, scores: np.ndarray, seed: int
) -> tuple[float, float]:
    special = torch.tensor(text.special)
    a = torch.tensor(unit(scores, ~special.numpy()), dtype=torch.float64)  # [token]
    inputs = classifier.batch([text]).inputs
    x = classifier.forward(inputs).embeddings  # [1, token, D]
    generator = torch.Generator().manual_seed(seed)
    draws = torch.rand(DRAWS, *x.shape[1:], generator=generator, dtype=torch.float64)
    share = a[:, None].expand(x.shape[1:])
    kept = torch.cat(
        [
            torch.ones(1, *x.shape[1:], dtype=torch.bool),  # p(x)
            torch.zeros(1, *x.shape[1:], dtype=torch.bool),  # p(0)
            draws < share,  # (1)
            draws < 1 - share,  # (2)
        ]
    )
    kept[:, special] = True
    p = _answers(classifier, inputs, x, kept.to(x.device))
    drop = np.maximum(0, p[0] - p)
    null = drop[1]  # 1 − S0
    if null <= GUARD:
        return float("nan"), float("nan")
    sufficient = np.maximum(0, null - drop[2 : 2 + DRAWS]) / null  # eq. 3
    comprehensive = np.minimum(1, drop[2 + DRAWS :] / null)  # eq. 4
    return float(sufficient.mean()), float(comprehensive.mean())


def _answers(
    classifier: Classifier, inputs: dict[str, Tensor], x: Tensor, kept: Tensor
) -> np.ndarray:
    """[mask]: p of the class that is predicted with all kept, which is the first mask."""
    many = {name: ids.expand(len(kept), -1) for name, ids in inputs.items()}
    logits = classifier.forward(many, embeddings=x * kept).logits
    found = probabilities(logits).cpu().numpy()
    target = predicted(found[0])
    return np.array([probability(one, target) for one in found])


def unit(scores: np.ndarray, real: np.ndarray) -> np.ndarray:
    """Scores of the real tokens brought to [0, 1]; ½ each where they are all the same."""
    of = np.where(real, scores, 0.0).astype(np.float64)
    low, high = of[real].min(), of[real].max()
    return np.full(len(of), 0.5) if low == high else np.clip((of - low) / (high - low), 0, 1)
