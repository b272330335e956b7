"""How much can a small change of the input change the model? (REGEX, §3.2)

Two penalties, each a term of its own: the size of the loss's input gradient, and the divergence
of the predictions under the perturbation that was found to raise it most.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from erlib.losses.objective import Step, objective
from erlib.losses.task import TaskLoss


@objective("input_gradient", version=1)
class InputGradient:
    """L_gr = mean_b ‖∂L_b/∂x_b‖₂ + ‖θ‖₂ (eq. 4): one norm per text, not squared.

    x is the word embedding. The gradient stays in the graph: training differentiates it again.
    """

    version: ClassVar[int]
    only_in_training: ClassVar[bool] = True

    def loss(self, step: Step) -> dict[str, Tensor]:
        """The unweighted term under the name `input_gradient`."""
        x = step.forward().embeddings  # [batch, token, dim]
        summed = TaskLoss().loss(step)["task"] * len(x)  # so that each text has its own gradient
        (gradient,) = torch.autograd.grad(summed, x, create_graph=True)
        of_text = (gradient * step.mask[..., None]).flatten(1).norm(dim=1)
        classifier = step.classifier
        theta = [*classifier.encoder_parameters(), *classifier.head_parameters()]
        size = torch.stack([p.norm() for p in theta]).norm()
        return {"input_gradient": of_text.mean() + size}  # eq. 4


@objective("virtual_adversarial", version=1)
class VirtualAdversarial:
    """L_at = KL(p_x ‖ p_δ) + KL(p_δ ‖ p_x), the left side of each held fixed (eq. 3, as in SMART).

    δ is added to the embedding block's output. As in SMART's code it is divided, token by token,
    by its largest entry plus `epsilon`, so that it ends with entries up to 1; `project` keeps the
    ball of radius `epsilon` that the paper speaks of (regex.md §4.1).
    """

    version: ClassVar[int]
    only_in_training: ClassVar[bool] = True

    def __init__(
        self,
        sigma: float = 1e-5,
        eta: float = 1e-3,
        epsilon: float = 1e-5,
        ascents: int = 2,
        project: bool = False,
    ) -> None:
        self.sigma, self.eta, self.epsilon = sigma, eta, epsilon
        self.ascents, self.project = ascents, project

    def loss(self, step: Step) -> dict[str, Tensor]:
        """The unweighted term under the name `virtual_adversarial`."""
        clean = step.forward()
        entry = clean.entry + self.perturbation(step)
        p, q = clean.logits, step.classifier.forward(step.batch.inputs, entry=entry).logits
        divergence = kl(p.detach(), q) + kl(q.detach(), p)
        return {"virtual_adversarial": divergence.mean()}

    def perturbation(self, step: Step) -> Tensor:
        """δ, [batch, token, dim]: `ascents` steps uphill on the divergence from a random start."""
        clean = step.forward()
        entry, logits = clean.entry.detach(), clean.logits.detach()
        delta = self.sigma * step.drawn("start of δ", partial(_normal, entry))
        for _ in range(self.ascents):
            delta.requires_grad_()
            moved = step.classifier.forward(step.batch.inputs, entry=entry + delta).logits
            (gradient,) = torch.autograd.grad(kl(logits, moved).sum(), delta)
            delta = self._within(delta.detach() + self.eta * gradient)
        return delta

    def _within(self, delta: Tensor) -> Tensor:
        if self.project:
            return delta.clamp(-self.epsilon, self.epsilon)
        return delta / (delta.abs().amax(dim=-1, keepdim=True) + self.epsilon)


def _normal(like: Tensor, step: Step) -> Tensor:
    """Drawn for every text of a step, in the width and type of `like` [batch, token, dim]."""
    return torch.randn(len(step.batch.ids), *like.shape[1:], dtype=like.dtype, device=like.device)


def kl(p: Tensor, q: Tensor) -> Tensor:
    """KL(p ‖ q) of each text, [batch], from logits [batch, class]; a single logit is class 1's."""
    log_p, log_q = _log_probabilities(p), _log_probabilities(q)
    return (log_p.exp() * (log_p - log_q)).sum(dim=-1)


def _log_probabilities(logits: Tensor) -> Tensor:
    if logits.shape[-1] == 1:
        logits = torch.cat([torch.zeros_like(logits), logits], dim=-1)
    return logits.log_softmax(dim=-1)
