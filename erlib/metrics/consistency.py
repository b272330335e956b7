"""Do texts that look alike to the model get explanations that look alike?

CONS: Spearman's ρ between the distances of hidden states and the distances of explanations, over
all pairs of texts in a batch; mean over batches (metrics.md §7, ivra.md §4.7 and 4.8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

BATCH = 64


@dataclass(frozen=True)
class Consistency:
    """Mean of `batches`, each one batch's ρ; a batch with constant distances has none."""

    value: float
    batches: list[float]
    skipped: int


def consistency(
    hidden: Sequence[np.ndarray], explanations: Sequence[np.ndarray], *, batch_size: int = BATCH
) -> Consistency:
    """CONS of explanations r_i ([token]) given hidden states H_i ([token, dim], mean over layers).

    Texts are batched in the order given: a batch is part of the definition, as all texts of a batch
    are padded with zeros to its longest.
    """
    if len(hidden) != len(explanations):
        raise ValueError(f"{len(hidden)} hidden states for {len(explanations)} explanations")
    batches, skipped = [], 0
    for start in range(0, len(hidden), batch_size):
        h = hidden_distances(hidden[start : start + batch_size])
        r = explanation_distances(explanations[start : start + batch_size])
        if _constant(h) or _constant(r):
            skipped += 1
        else:
            batches.append(float(spearmanr(h, r).statistic))
    return Consistency(float(np.mean(batches)) if batches else float("nan"), batches, skipped)


def distribution(scores: np.ndarray) -> np.ndarray:
    """|scores| / Σ|scores|: any method's scores on the footing of r; all zeros say: all alike."""
    size = np.abs(np.where(np.isfinite(scores), scores, 0.0).astype(np.float64))
    total = size.sum()
    return size / total if total > 0 else np.full(len(size), 1 / len(size))


def hidden_distances(hidden: Sequence[np.ndarray]) -> np.ndarray:
    """[pair i<j] D_H = mean over positions of ‖H_i,t − H_j,t‖₂."""
    states = _padded(hidden).transpose(0, 1)  # [token, text, dim]
    total = torch.zeros(len(hidden), len(hidden), dtype=torch.float64)
    for at_position in states:
        total += _distances(at_position)
    return _upper(total / len(states))


def explanation_distances(explanations: Sequence[np.ndarray]) -> np.ndarray:
    """[pair i<j] D_r = ‖r_i − r_j‖₂."""
    return _upper(_distances(_padded(explanations)))


def _padded(arrays: Sequence[np.ndarray]) -> Tensor:
    """[text, token, …] with zeros after the end of each text."""
    rows = [torch.as_tensor(np.asarray(a), dtype=torch.float64) for a in arrays]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def _distances(rows: Tensor) -> Tensor:
    # Not through ‖a‖² + ‖b‖² − 2ab: equal rows must be at distance 0, not 1e-8.
    return torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")


def _upper(matrix: Tensor) -> np.ndarray:
    first, second = torch.triu_indices(len(matrix), len(matrix), offset=1)
    return matrix[first, second].numpy()


def _constant(values: np.ndarray) -> bool:
    return len(values) < 2 or bool(values.min() == values.max())
