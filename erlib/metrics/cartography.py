"""Which texts are easy to learn, and how sharply does the model bend around them?

Cartography follows the probability of the gold class over epoch ends, on test texts in eval mode;
curvature is the gradient of the representation that the classifier decides on, and how far the
next text is from it (metrics.md §10, agreement.md §4.8 and 4.9).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from erlib.data.encoding import Encoded, batch_indices, collate
from erlib.errors import unknown
from erlib.models.classifier import Classifier

GROUPS = ("Easy", "Amb", "Hard")


def cartography(
    p_gold: np.ndarray, correct: np.ndarray, *, ids: Sequence[str] | None = None
) -> pd.DataFrame:
    """One row per text from [epoch, text] gold-class probabilities and correctness.

    Columns: `id, confidence` (mean), `variability` (std, ddof 0), `correctness` (count),
    `closeness` (conf·(1 − conf)), `group`.
    """
    p_gold, correct = np.asarray(p_gold, dtype=np.float64), np.asarray(correct, dtype=bool)
    if p_gold.ndim != 2 or p_gold.shape != correct.shape:
        raise ValueError(f"need two [epoch, text] tables, not {p_gold.shape} and {correct.shape}")
    confidence = p_gold.mean(axis=0)
    correctness = correct.sum(axis=0)
    return pd.DataFrame(
        {
            "id": [str(i) for i in range(p_gold.shape[1])] if ids is None else list(ids),
            "confidence": confidence,
            "variability": p_gold.std(axis=0),
            "correctness": correctness,
            "closeness": confidence * (1 - confidence),
            "group": [group(int(c), len(p_gold)) for c in correctness],
        }
    )


def group(correctness: int, epochs: int) -> str | None:
    """Easy: always right; Hard: never; Amb: half of the epochs, rounded either way (2 or 3 of 5);
    None for the rest."""
    if correctness == epochs:
        return "Easy"
    if correctness == 0:
        return "Hard"
    return "Amb" if epochs // 2 <= correctness <= -(-epochs // 2) else None


NORMS = ("exact", "hutchinson", "sum")


def curvature(
    classifier: Classifier,
    encoded: Sequence[Encoded],
    *,
    norms: Sequence[str] = ("hutchinson", "sum"),
    probes: int = 16,
    seed: int = 0,
    batch_size: int = 32,
) -> pd.DataFrame:
    """‖∂h/∂E‖ of every text and the distance of its h to the nearest other text.

    h is the vector fed to the final linear map, E the embedding block's output. Columns: `id`, one
    per norm, `min_dist`. Norms: "exact" (Frobenius norm of the Jacobian), "hutchinson" (its
    estimate from `probes` random signs, the same for every text), "sum" (‖∂(Σ_k h_k)/∂E‖).
    """
    for norm in norms:
        if norm not in NORMS:
            raise unknown("norm", norm, NORMS)
    classifier.eval()
    pad_id = int(classifier.tokenizer.pad_token_id)
    columns = {norm: np.zeros(len(encoded)) for norm in norms}
    states: list[Tensor | None] = [None] * len(encoded)
    for rows in batch_indices([len(e.input_ids) for e in encoded], batch_size):
        batch = collate([encoded[i] for i in rows], pad_id).to(classifier.device)
        # cuDNN's LSTM has no backward in eval mode.
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
            output = classifier.forward(batch.inputs)  # derivatives of many at once
            if output.pooled is None:
                raise ValueError(f"'{classifier.name}' has no pooled vector: a span model?")
            for norm, values in columns.items():
                directions = probe_directions(norm, output.pooled.shape[1], probes, seed)
                size = gradient_norm(output.pooled, output.entry, directions.to(output.pooled))
                values[rows] = size.cpu().numpy()
        for i, state in zip(rows, output.pooled.detach().cpu(), strict=True):
            states[i] = state
    distances = nearest_distance(torch.stack([s for s in states if s is not None]))
    return pd.DataFrame({"id": [e.id for e in encoded], **columns, "min_dist": distances})


def probe_directions(norm: str, dim: int, probes: int, seed: int) -> Tensor:
    """[direction, dim] rows v with Σ ‖vᵀJ‖² = ‖J‖_F² (exact; hutchinson: in expectation)."""
    if norm == "exact":
        return torch.eye(dim, dtype=torch.float64)
    if norm == "sum":
        return torch.ones(1, dim, dtype=torch.float64)
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(0, 2, (probes, dim), generator=generator).double() * 2 - 1
    return signs / probes**0.5


def gradient_norm(h: Tensor, entry: Tensor, directions: Tensor) -> Tensor:
    """[text] sqrt(Σ_v ‖vᵀ ∂h/∂E‖²): one vector-Jacobian product for each direction v."""
    total = torch.zeros(len(h), dtype=torch.float64, device=h.device)
    for v in directions:
        (gradient,) = torch.autograd.grad(h, entry, v.expand_as(h), retain_graph=True)
        total += gradient.double().square().sum(dim=(1, 2))
    return total.sqrt()


def nearest_distance(states: Tensor) -> np.ndarray:
    """[text] L2 distance of each row to the nearest other row."""
    states = states.double()
    nearest = torch.full((len(states),), torch.inf, dtype=torch.float64)
    for start in range(0, len(states), 256):
        rows = torch.arange(start, min(start + 256, len(states)))
        distances = torch.cdist(states[rows], states, compute_mode="donot_use_mm_for_euclid_dist")
        distances[torch.arange(len(rows)), rows] = torch.inf
        nearest[rows] = distances.amin(dim=1)
    return nearest.numpy()
