"""How much do a text's hidden states resemble each other, and how little their own words?

Agreement §3.4. h_t is the last hidden state of token t (BiLSTM output, or last layer), e_t its word
embedding alone, without position or layer norm. The switches reproduce what the paper's code did
otherwise (agreement.md §4.2 to 4.4).
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from erlib.errors import unknown
from erlib.losses.objective import Step, objective

AXES = ("time", "batch")


@objective("conicity", version=1)
class Conicity:
    """conicity(H) = (1/T) Σ_t cos(h_t, h̄), h̄ the mean over the text's tokens; mean over texts.

    axis="batch": h̄ is, at each position, the mean over the *texts* of the batch, which is what the
    code's transposition makes of batch-first states. mask=False: pads are tokens like any other.
    """

    version: ClassVar[int]

    def __init__(self, axis: str = "time", mask: bool = True) -> None:
        if axis not in AXES:
            raise unknown("axis", axis, AXES)
        self.dim = 1 if axis == "time" else 0
        self.of_whole_batch = axis == "batch"
        self.mask = mask

    def loss(self, step: Step) -> dict[str, Tensor]:
        h = step.forward().hidden_states[-1]  # [batch, token, dim]
        counts = _counted(step, h, self.mask)
        total = (h * counts[..., None]).sum(self.dim, keepdim=True)
        mean = total / counts.sum(self.dim)[..., None].clamp(min=1).unsqueeze(self.dim)
        atm = cosine_similarity(h, mean, dim=-1)  # eq. 1
        return {"conicity": _mean_over_texts(atm, counts)}  # eq. 2


@objective("tying", version=1)
class Tying:
    """tying(H, E) = (1/T) Σ_t ‖h_t − e_t‖₂, mean over texts; squared=True is the paper's eq. 3.

    The code's norm is not squared, and only that norm goes with the paper's λ. mask=False: pads
    are tokens like any other.
    """

    version: ClassVar[int]

    def __init__(self, squared: bool = False, mask: bool = True) -> None:
        self.squared = squared
        self.mask = mask

    def loss(self, step: Step) -> dict[str, Tensor]:
        output = step.forward()
        h, e = output.hidden_states[-1], output.embeddings
        if h.shape != e.shape:
            raise ValueError(
                f"tying compares states of size {h.shape[-1]} with embeddings of size "
                f"{e.shape[-1]}; it needs a model in which both are equal"
            )
        distance = torch.linalg.vector_norm(h - e, dim=-1)
        distance = distance.square() if self.squared else distance  # eq. 3
        return {"tying": _mean_over_texts(distance, _counted(step, h, self.mask))}


def _counted(step: Step, h: Tensor, masked: bool) -> Tensor:
    """[batch, token]: 1 for the tokens that count."""
    return step.mask.to(h.dtype) if masked else torch.ones_like(h[..., 0])


def _mean_over_texts(values: Tensor, counts: Tensor) -> Tensor:
    """Mean over each text's tokens, then over texts; values and counts [batch, token]."""
    return ((values * counts).sum(dim=1) / counts.sum(dim=1)).mean()
