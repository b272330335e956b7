"""How good is the model's own explanation? The criteria of IvRA §2.2 as losses

r is what the classifier's learned attention says of a text, ỹ the class (of a span model: start
and end) it predicts for the whole text, held fixed, p the probability of ỹ, t the best k % of the
tokens that are not specials, and x∖t the text without them.

    COMP   μ + max(−μ, −(log p(x) − log p(x∖t)))                                      (eq. 10)
    SUFF   μ + max(−μ, −(log p(t) − log p(x)))                                        (eq. 11)
    CONS   KL(r_i ‖ r_j) / (‖H_i − H_j‖₂ + ε), mean over the pairs of a batch     (eq. 13, 19)
    SIM    CE(S(x), ỹ) + β KL(r ‖ r*), for a student S with the explanation r*         (eq. 7)

SIM trains the teacher by way of its student: see `erlib.training.pilot`.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from erlib.attributions.explained import chosen_target, over_tokens
from erlib.errors import unknown
from erlib.losses.guided import divergence
from erlib.losses.objective import Step, objective
from erlib.losses.robustness import kl
from erlib.models.learned_attention import entropy

PERCENTS = (1, 5, 10, 20, 50)  # one drawn for each step, as the metrics' bins (ivra.md §3)
ON_DEV = 10  # so that epochs can be compared
SMALLEST = 1e-8  # of a share, so that its logarithm is finite
EPSILON = 1e-6  # ε
SUFFICIENCY = ("margin", "absolute", "kl")
CONSISTENCY = ("pairs", "clusters")


@objective("comprehensiveness", version=2)
class Comprehensiveness:
    """COMP: the text without its best tokens should not be enough for ỹ."""

    version: ClassVar[int]

    def __init__(self, margin: float = 1.0) -> None:
        self.margin = margin

    def loss(self, step: Step) -> dict[str, Tensor]:
        """The unweighted term under the name `comprehensiveness`."""
        chosen = predicted(step)
        whole = log_probability(step.forward().logits, chosen, step.mask)
        percent = drawn_percent(step, "comprehensiveness")
        without = log_probability(without_best(step, percent), chosen, step.mask)
        drop = whole - without
        if step.classifier.model.training:
            owed = (step.explanation.r * blame(step, chosen)).sum(dim=1)
            drop = drop + owed - owed.detach()  # the value is eq. 10's
        value = self.margin + (-drop).clamp(min=-self.margin)  # eq. 10
        return {"comprehensiveness": value.mean()}


@objective("sufficiency", version=2)
class Sufficiency:
    """SUFF: the best tokens should be enough for ỹ.

    form: "margin" (eq. 11), "absolute" (eq. 16: the distance of the log-probabilities), or "kl"
    (eq. 17: of the whole predictions), which know no margin.
    """

    version: ClassVar[int]

    def __init__(self, margin: float = 0.1, form: str = "margin") -> None:
        if form not in SUFFICIENCY:
            raise unknown("form of sufficiency", form, SUFFICIENCY)
        self.margin, self.form = margin, form

    def loss(self, step: Step) -> dict[str, Tensor]:
        """The unweighted term under the name `sufficiency`."""
        x, t = step.forward().logits, best_alone(step, drawn_percent(step, "sufficiency"))
        if self.form == "kl":
            return {"sufficiency": prediction_divergence(t, x, step.mask).mean()}  # eq. 17
        chosen = predicted(step)
        drop = log_probability(x, chosen, step.mask) - log_probability(t, chosen, step.mask)
        if self.form == "absolute":
            return {"sufficiency": drop.abs().mean()}  # eq. 16
        return {"sufficiency": (self.margin + drop.clamp(min=-self.margin)).mean()}  # eq. 11


@objective("consistency", version=1)
class Consistency:
    """CONS: texts that look alike to the model should be explained alike.

    H is the mean over layers of the hidden states, 0 on pads, and is held fixed: else the loss
    falls by pushing the states apart (ivra.md §3). Both orders of a pair count.
    form="clusters" is eq. 20: near to the explanations of the same class, far from the others, with
    the sign that its text intends (ivra.md §4.17).
    """

    version: ClassVar[int]
    of_whole_batch: ClassVar[bool] = True

    def __init__(self, form: str = "pairs") -> None:
        if form not in CONSISTENCY:
            raise unknown("form of consistency", form, CONSISTENCY)
        self.form = form

    def loss(self, step: Step) -> dict[str, Tensor]:
        """The unweighted term under the name `consistency`; 0 for a single text."""
        r = step.explanation.r
        if self.form == "clusters":
            return {"consistency": clustering(r, _classes(step))}
        states = torch.stack(step.forward().hidden_states[1:]).mean(dim=0).detach()
        return {"consistency": pair_divergence(r, states * step.mask[..., None])}


@objective("simulation", version=1)
class Simulation:
    """KL(r ‖ r*), the second half of eq. 7, for a student that is taught explanations r."""

    version: ClassVar[int]
    only_in_training: ClassVar[bool] = True

    def loss(self, step: Step) -> dict[str, Tensor]:
        """The unweighted term under the name `simulation`."""
        if step.batch.explanation is None:
            raise ValueError(
                "nobody explains these texts: a student's data name a teacher and its method, "
                "DataSpec(…, taught=Teaching(run, method))"
            )
        taught = explanation_divergence(step.batch.explanation, step.explanation.r, step.mask)
        return {"simulation": taught.mean()}


@objective("entropy", version=1)
class Entropy:
    """−Σ_t r_t log r_t, to be watched with weight 0: log L for a flat explanation."""

    version: ClassVar[int]

    def loss(self, step: Step) -> dict[str, Tensor]:
        """Under the name `entropy`."""
        return {"entropy": entropy(step.explanation.r).mean()}


def predicted(step: Step) -> Tensor:
    """ỹ: the class [batch] or span [batch, 2] predicted for the whole text."""
    return chosen_target("predicted", step.batch, step.forward().logits)


def log_probability(logits: Tensor, chosen: Tensor, mask: Tensor) -> Tensor:
    """log p(ỹ), [batch]; of a span log p(start) + log p(end), over the text's real tokens."""
    if logits.ndim == 3:
        log_p = over_tokens(logits, mask).log_softmax(dim=1)
        return log_p.gather(1, chosen[:, None]).sum(dim=(1, 2))
    if logits.shape[-1] == 1:
        return logsigmoid(logits[:, 0] * (2 * chosen - 1))
    return logits.log_softmax(dim=-1).gather(1, chosen[:, None])[:, 0]


def prediction_divergence(p: Tensor, q: Tensor, mask: Tensor) -> Tensor:
    """KL between predictions, [batch], from logits; of a span that of its start plus its end."""
    if p.ndim == 3:
        p, q = (over_tokens(z, mask).transpose(1, 2) for z in (p, q))
        return kl(p, q).sum(dim=1)
    return kl(p, q)


def drawn_percent(step: Step, of: str = "percent") -> int:
    """The share of tokens that are best in this step, drawn once `of` each loss."""
    if not step.classifier.model.training:
        return ON_DEV
    return PERCENTS[int(step.drawn(of, lambda _: torch.randint(len(PERCENTS), ())))]


def without_best(step: Step, percent: int) -> Tensor:
    """Logits of x∖t; r has no part in their gradient (see `blame`)."""
    return _kept(step, 1 - best_tokens(step, percent))


def best_alone(step: Step, percent: int) -> Tensor:
    """Logits of t, whose mask is hard in value and has the gradient of r̂ = r / max r."""
    r = step.explanation.r
    soft = r / r.amax(dim=1, keepdim=True)
    return _kept(step, best_tokens(step, percent) + (soft - soft.detach()))


def best_tokens(step: Step, percent: int) -> Tensor:
    """[batch, token]: 1 for the max(1, ceil(k %)) best tokens, 0 for others.

    Of equal tokens the earlier is the better, as in the metrics.
    """
    r, ranked = step.explanation.r.detach(), step.mask.bool() & ~step.batch.special
    lengths = ranked.sum(dim=1, keepdim=True)
    k = (-(-percent * lengths // 100)).clamp(min=1)  # ceil, in whole numbers
    order = r.masked_fill(~ranked, -1).argsort(dim=1, descending=True, stable=True)
    return ((order.argsort(dim=1) < k) & ranked).to(r.dtype)


def blame(step: Step, chosen: Tensor) -> Tensor:
    """∂ log p(ỹ) / ∂m_j at the whole text, m = 1: what is lost with a token; 0 for specials.

    The choice of t has no gradient. To first order the text loses Σ_{j ∈ t} blame_j, so r learns
    from Σ_j r_j blame_j. A straight-through mask would take the slope where the best tokens are
    gone already, which tells little of what they were worth: its rank correlation with leaving a
    token out is .2 there and .9 here (MiniLM, 40 texts). After 60 steps from a trained MiniLM the
    COMP of 200 held-out texts, on which this was chosen, rises from .125 to .177 with softmax and
    from .112 to .191 with sparsemax; straight through to .144 and .134 (ivra.md §4.4). With another
    seed and 300 other texts: from .122 to .161 and from .117 to .209.
    """
    with torch.enable_grad():
        gate = torch.ones_like(step.explanation.r, requires_grad=True)
        log_p = log_probability(step.forward(gate=gate).logits, chosen, step.mask)
        (slope,) = torch.autograd.grad(log_p.sum(), gate)
    return slope.masked_fill(step.batch.special, 0.0)


def _kept(step: Step, kept: Tensor) -> Tensor:
    """Logits of the text with only the `kept` tokens and the specials.

    What is not kept gets no attention, as in the metric (`erlib.models.gate`).
    """
    gate = torch.where(step.batch.special, torch.ones_like(kept), kept)
    return step.forward(gate=gate).logits


def pair_divergence(r: Tensor, states: Tensor) -> Tensor:
    """eq. 19: mean over i ≠ j of KL(r_i ‖ r_j) / (‖H_i − H_j‖₂ + ε); states [batch, token, dim]."""
    n = len(r)
    if n < 2:
        return r.sum() * 0
    p = r + SMALLEST
    negative_entropy = (p * p.log()).sum(dim=1, keepdim=True)
    divergences = negative_entropy - p @ p.log().T  # [i, j]
    flat = states.flatten(1)
    distances = torch.cdist(flat, flat, compute_mode="donot_use_mm_for_euclid_dist")
    different = ~torch.eye(n, dtype=torch.bool, device=r.device)
    return (divergences / (distances + EPSILON))[different].mean()  # eq. 13


def clustering(r: Tensor, classes: Tensor) -> Tensor:
    """eq. 20: mean squared distance to r of the same class less that to r of other classes."""
    squares = r.square().sum(dim=1)
    distances = squares[:, None] + squares[None] - 2 * r @ r.T
    same = classes[:, None] == classes[None]
    others = ~same
    same = same & ~torch.eye(len(r), dtype=torch.bool, device=r.device)
    near, far = (
        (distances * chosen).sum(dim=1) / chosen.sum(dim=1).clamp(min=1)
        for chosen in (same, others)
    )
    return (near - far).mean()


def _classes(step: Step) -> Tensor:
    if step.classifier.task == "span" or step.batch.labels is None:
        raise ValueError("the clusters of consistency are classes; spans have none: form='pairs'")
    return step.batch.labels


def explanation_divergence(r: Tensor, learnt: Tensor, mask: Tensor) -> Tensor:
    """KL(r ‖ r*), [batch]; r* = `learnt` is clipped from below, for sparsemax knows zeros."""
    learnt = learnt.clamp(min=SMALLEST)
    return divergence(r, learnt / (learnt * mask).sum(dim=1, keepdim=True))
