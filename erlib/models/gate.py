"""What does a model answer when it may look at a token only in part?

In every layer a gate m [batch, key] multiplies exp(score) before the softmax is normalised:

    A_ij = m_j e^{s_ij} / Σ_k m_k e^{s_ik}

m = 1 leaves a token as it is; m = 0 is an attention mask of 0. Adding log m to the scores is the
same for m > 0, but has no gradient at 0, where it says what a token that was taken away would add.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode


class AttentionGate(TorchFunctionMode):
    """While open, every softmax is gated: within a supported body these are its attention maps.

    An error at the end if they were not one for each of `layers`.
    """

    def __init__(self, gate: Tensor, layers: int) -> None:
        super().__init__()
        self.gate = gate[:, None, None, :]  # over heads and queries
        self.layers = layers
        self.count = 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is not nn.functional.softmax:
            return result
        self.count += 1
        return gated(result, self.gate)

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        super().__exit__(exc_type, exc_val, exc_tb)
        if exc_type is None and self.count != self.layers:
            raise RuntimeError(f"{self.count} gated attention maps for {self.layers} layers")


def gated(attention: Tensor, gate: Tensor) -> Tensor:
    """m_j A_ij / Σ_k m_k A_ik: the equation above, divided through by the ungated sum.

    A query that sees only keys with m = 0 (the first words of a causal text that has lost them) is
    left ungated: no other query looks at it.
    """
    kept = attention * gate
    total = kept.sum(dim=-1, keepdim=True)
    sees = total > 0
    return torch.where(sees, kept / torch.where(sees, total, 1.0), attention)
