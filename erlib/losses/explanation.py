"""How far are the model's attributions from the annotators' rationales? (ER lens, §3)

Each guide is the attribution technique itself, computed inside the graph, with the scaling and
the target that the paper gives it.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from erlib.attributions.attention import rolled_out
from erlib.attributions.attn_lrp import relevance
from erlib.errors import unknown
from erlib.losses.objective import Step, objective


class Guidance(NamedTuple):
    """What L_expl compares, all [batch, token] but `counts`, which is [batch] of 0/1."""

    attribution: Tensor
    target: Tensor
    counts: Tensor


def _attention(step: Step, rationale: Tensor, annotated: Tensor) -> Guidance:
    """ATT: the read token's row of the last layer's head-averaged attention, x 100, softmax."""
    attention = step.forward().attentions[-1].mean(dim=1)  # [batch, query, key]
    row = step.classifier.read_row(attention, step.mask)
    sharpened = torch.where(step.mask.bool(), 100 * row, -1e6).softmax(dim=-1)
    return Guidance(sharpened, _spread(rationale), annotated.to(row.dtype))


def _rollout(step: Step, rationale: Tensor, annotated: Tensor) -> Guidance:
    """ATTR: the read token's row of rollout, as it is."""
    maps = rolled_out([a.mean(dim=1) for a in step.forward().attentions])
    row = step.classifier.read_row(maps[-1], step.mask)
    return Guidance(row, _spread(rationale), annotated.to(row.dtype))


def _input_x_gradient(step: Step, rationale: Tensor, annotated: Tensor) -> Guidance:
    """IXG: |Σ_d E_d ∂z_gold/∂E_d| over its ℓ2 norm in the text; the target is binary.

    All texts count. The gradient stays in the graph: training differentiates it a second time.
    """
    output = step.forward()
    gold = output.logits.gather(1, _labels(step)[:, None]).sum()
    (gradient,) = torch.autograd.grad(gold, output.entry, create_graph=True)
    return _sizes((output.entry * gradient).sum(dim=-1) * step.mask, rationale)


def _attn_lrp(step: Step, rationale: Tensor, annotated: Tensor) -> Guidance:
    """AttnLRP, scaled as IXG is. No paper's: the relevance is followed without dropout."""
    h = step.forward().hidden_states[0]
    found = relevance(step.classifier, h, step.mask, _labels(step), create_graph=True)
    return _sizes(found * step.mask, rationale)


def _labels(step: Step) -> Tensor:
    if step.batch.labels is None:
        raise ValueError("guidance by this technique explains the gold class; no labels here")
    return step.batch.labels


def _sizes(scores: Tensor, rationale: Tensor) -> Guidance:
    """Sizes over their ℓ2 norm in the text, against the binary rationale; all texts count."""
    norm = scores.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    return Guidance((scores / norm).abs(), rationale, torch.ones_like(scores[:, 0]))


def _spread(rationale: Tensor) -> Tensor:
    """e / Σe: the rationale as a distribution; rows without a rationale stay zero."""
    return rationale / rationale.sum(dim=-1, keepdim=True).clamp(min=1)


GUIDES = {
    "attention": _attention,
    "rollout": _rollout,
    "input_x_gradient": _input_x_gradient,
    "attn_lrp": _attn_lrp,
}


@objective("explanation", version=2)
class ExplanationLoss:
    """L_expl = Σ_bt |â_bt − g_bt| m_bt k_b / Σ_bt m_bt k_b, a mean over tokens of the batch.

    k_b says whether text b counts: with attention and rollout, only one that has a rationale.
    A batch in which no text counts has loss 0.
    logged: the name of the loss, where an objective has those of several guides.
    """

    version: ClassVar[int]

    def __init__(self, guide: str, logged: str = "explanation") -> None:
        if guide not in GUIDES:
            raise unknown("guide", guide, GUIDES)
        self.guide, self.logged = guide, logged

    def loss(self, step: Step) -> dict[str, Tensor]:
        batch = step.batch
        if batch.rationale is None or batch.has_rationale is None:
            raise ValueError(
                "explanation regularisation needs rationales; this corpus has none "
                "(`python -m erlib data ls` shows which do)"
            )
        follow = GUIDES[self.guide]
        attribution, target, counts = follow(step, batch.rationale, batch.has_rationale)
        weight = step.mask * counts[:, None]
        distance = ((attribution - target).abs() * weight).sum()
        return {self.logged: distance / weight.sum().clamp(min=1)}

    def counted(self, step: Step) -> Tensor:
        """Tokens, of all texts or of those with a rationale."""
        annotated = step.batch.has_rationale
        if self.guide == "input_x_gradient" or annotated is None:
            return step.mask.sum()
        return (step.mask * annotated[:, None]).sum()
