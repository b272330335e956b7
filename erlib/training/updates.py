"""How does a step's loss change the parameters?

A strategy owns its optimiser and schedule and can be saved and restored as tensors, so that the
loop knows nothing of either. Plain gradient descent on the weighted sum lives here.
"""

from __future__ import annotations

import torch
from torch import Tensor

from erlib.config import OptimiserSpec
from erlib.models.classifier import Classifier


def linear_schedule(step: int, total: int, warmup: float) -> float:
    """The factor on the learning rate at `step` of `total`: linear up, then linear down to 0."""
    rising = max(1, round(warmup * total))
    if step < rising:
        return step / rising
    return max(0.0, (total - step) / max(1, total - rising))


class PlainUpdate:
    """AdamW on the weighted sum of all losses, with one learning rate per parameter group."""

    def __init__(self, classifier: Classifier, spec: OptimiserSpec, total_steps: int) -> None:
        self.spec = spec
        self.total_steps = total_steps
        self.rates = (spec.lr, spec.lr if spec.head_lr is None else spec.head_lr)
        groups = (classifier.encoder_parameters(), classifier.head_parameters())
        self.optimiser = torch.optim.AdamW(
            [{"params": group, "lr": lr} for group, lr in zip(groups, self.rates, strict=True)],
            betas=spec.betas,
            weight_decay=spec.weight_decay,
            fused=True,
        )

    def apply(self, losses: dict[str, Tensor], step: int) -> None:
        """One descent step on `losses["loss"]`; `step` counts from 0 over the whole run."""
        self.optimiser.zero_grad(set_to_none=True)
        losses["loss"].backward()
        if self.spec.clip is not None:
            torch.nn.utils.clip_grad_norm_(self._parameters(), self.spec.clip)
        factor = linear_schedule(step, self.total_steps, self.spec.warmup)
        for group, lr in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = lr * factor
        self.optimiser.step()

    def _parameters(self) -> list[Tensor]:
        return [p for group in self.optimiser.param_groups for p in group["params"]]

    def tensors(self) -> dict[str, Tensor]:
        """The optimiser's state as named tensors."""
        state = self.optimiser.state_dict()["state"]
        return {f"{i}.{key}": value for i, slot in state.items() for key, value in slot.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `tensors`."""
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            index, key = name.split(".", 1)
            state.setdefault(int(index), {})[key] = value
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})
