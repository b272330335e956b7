"""Which tokens does a model look at, once where to look is learned? (IvRA §2.1, and SMaT)

Both explainers are read-outs: they look at a model's queries and keys and leave its forward pass as
it is. With L real tokens, q and k as the layer projects them, and NORM softmax or sparsemax:

    IvRA   q̃_n = NORM(ω_Q ⊙ q_n),  k̃_t = NORM(ω_K ⊙ k_t)      over features, per head   (eq. 1, 2)
           ψ_t = (1/L) Σ_n q̃_n · k̃_t                           per head                  (eq. 4)
           Ψ   = Σ_h NORM([λ_h ψ^h]_h)                          over heads and tokens     (eq. 3)
           r   = Σ_ℓ NORM([η_ℓ Ψ_ℓ]_ℓ)                          over layers and tokens    (eq. 5)
    SMaT   r   = softmax_t(Σ_ℓh w_ℓh (1/L) Σ_n S^ℓh[n, t]),  w = sparsemax(φ),  S the scores
           before attention's softmax

NORM runs over the stack and the tokens together, the only reading that makes r a distribution
which is not constant (ivra.md §4.1). In a causal layer the mean over n is over the queries that can
see t; else early tokens would have more than their share (ivra.md §4.10).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import torch
from entmax import sparsemax
from torch import Tensor, nn
from transformers import PretrainedConfig

from erlib.models.classifier import Classifier, Output
from erlib.models.families import family_of
from erlib.models.layers import attention_scores, queries_keys, visible_keys

NORMS: dict[str, Callable[..., Tensor]] = {"softmax": torch.softmax, "sparsemax": sparsemax}
LEVELS = ("feature", "head", "layer")  # what can be selected: ω, λ, η
START = 0.7  # of log L, the entropy of a flat map: what Ψ and r begin with
VERSION = 2  # of both explainers; raised whenever a model trained with one gives other numbers


@dataclass(frozen=True)
class Explanation:
    """`r` [batch, token], a distribution over real tokens, specials included, 0 on pads.

    `layers` [batch, layer, token] is Ψ_ℓ, a distribution each; SMaT has none.
    """

    r: Tensor
    layers: Tensor | None


class InterpretableAttention(nn.Module):
    """IvRA's module: ω per feature, λ per head, η per layer; those outside `levels` stay constant.

    λ and η are a scale, measured once on real texts (`calibrate`), times a coefficient that starts
    at 1: a learning rate then means the same for ω, λ and η.
    """

    method = "ivra"
    omega_q: Tensor  # [layer, head, dim], as omega_k
    omega_k: Tensor
    lambda_: Tensor  # [layer, head]
    eta: Tensor  # [layer]
    scale_heads: Tensor  # [layer]
    scale_layers: Tensor  # []
    calibrated: Tensor  # [] bool

    def __init__(
        self, config: PretrainedConfig, *, name: str, norm: str, levels: Sequence[str] = LEVELS
    ) -> None:
        super().__init__()
        layers, heads = config.num_hidden_layers, config.num_attention_heads
        dim = getattr(config, "head_dim", None) or config.hidden_size // heads
        self.name, self.norm = name, norm
        self.causal = family_of(config.model_type).decoder
        coefficients = {
            "omega_q": ((layers, heads, dim), "feature"),
            "omega_k": ((layers, heads, dim), "feature"),
            "lambda_": ((layers, heads), "head"),
            "eta": ((layers,), "layer"),
        }
        for coefficient, (shape, level) in coefficients.items():
            if level in levels:
                self.register_parameter(coefficient, nn.Parameter(torch.ones(shape)))
            else:
                self.register_buffer(coefficient, torch.ones(shape))
        self.register_buffer("scale_heads", torch.ones(layers))
        self.register_buffer("scale_layers", torch.ones(()))
        self.register_buffer("calibrated", torch.tensor(False))

    @torch.no_grad()
    def reset(self) -> None:
        """All coefficients and scales 1, as in a new module."""
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.fill_(tensor.dtype != torch.bool)

    def read(
        self, classifier: Classifier, output: Output, mask: Tensor
    ) -> list[tuple[Tensor, Tensor]]:
        """q and k [batch, head, token, head_dim] of every layer, from one forward pass."""
        states = zip(classifier.layers, output.hidden_states, strict=False)  # but for the last
        return [queries_keys(view, h) for view, h in states]

    def forward(self, read: Sequence[tuple[Tensor, Tensor]], mask: Tensor) -> Explanation:
        """From what `read` gives and the mask [batch, token] of real tokens."""
        real = mask != 0
        layers = torch.stack(
            [
                self._joint(self.lambda_[i] * self.scale_heads[i], self._psi(i, *qk, real), real)
                for i, qk in enumerate(read)
            ],
            dim=1,
        )  # eq. 3
        return Explanation(self._joint(self.eta * self.scale_layers, layers, real), layers)  # eq. 5

    @torch.no_grad()
    def calibrate(self, read: Sequence[tuple[Tensor, Tensor]], mask: Tensor) -> None:
        """Choose the scales so that Ψ and r begin with START of a flat map's entropy, log L.

        ψ differs between tokens by about 1/head_dim, of which any NORM makes a constant; the paper
        names no scale. Entropy is what softmax and sparsemax can be given alike. At START sparsemax
        begins with exact zeros and can still be taught: a zero has no gradient, and from .4 no way
        of teaching COMP that was tried raised it in 60 steps (frozen encoder, one seed). Measured
        on 200 texts (COMP, SUFF: 64) of movie_snippets with a MiniLM trained on 2,000, softmax /
        sparsemax:

            START  exact zeros  entropy      words marked  COMP         SUFF
            .2     0 / .92      .52 / .52    .07 / .05     .087 / .057  .158 / .173
            .3     0 / .88      .83 / .79    .08 / .07     .089 / .060  .160 / .178
            .4     0 / .78      1.18 / 1.14  .08 / .10     .086 / .068  .162 / .180
            .5     0 / .65      1.56 / 1.47  .08 / .14     .087 / .084  .165 / .162
            .6     0 / .45      1.88 / 1.83  .08 / .19     .089 / .090  .171 / .153
            .7     0 / .23      2.13 / 2.19  .09 / .25     .090 / .097  .169 / .144

        One scale for all heads of a layer, and one for all layers: a scale for each would make the
        flattest the largest, and the others would vanish.
        """
        real = mask != 0
        layers = []
        for i, qk in enumerate(read):
            psi = self._psi(i, *qk, real)
            self.scale_heads[i] = self._scale(self.lambda_[i], psi, real)
            layers.append(self._joint(self.lambda_[i] * self.scale_heads[i], psi, real))
        self.scale_layers.copy_(self._scale(self.eta, torch.stack(layers, dim=1), real))
        self.calibrated.fill_(True)

    def coefficients(self) -> dict[str, Tensor]:
        """ω_Q, ω_K [layer, head, dim], λ [layer, head] and η [layer], scales included."""
        return {
            "omega_q": self.omega_q.detach(),
            "omega_k": self.omega_k.detach(),
            "lambda": (self.lambda_ * self.scale_heads[:, None]).detach(),
            "eta": (self.eta * self.scale_layers).detach(),
        }

    def _psi(self, layer: int, q: Tensor, k: Tensor, real: Tensor) -> Tensor:
        """ψ [batch, head, token]: every head's mean match of a token's key with the queries."""
        norm = NORMS[self.norm]
        q = norm(self.omega_q[layer][:, None] * q, dim=-1)  # eq. 1
        k = norm(self.omega_k[layer][:, None] * k, dim=-1)  # eq. 2
        return (mean_query(q, real, self.causal) * k).sum(dim=-1)  # eq. 4, the sum over n first

    def _joint(self, weights: Tensor, stack: Tensor, real: Tensor) -> Tensor:
        """Σ over the stack of NORM over both; weights [stack], stack [batch, stack, token]."""
        inputs = (weights[:, None] * stack).masked_fill(~real[:, None], -torch.inf)
        return NORMS[self.norm](inputs.flatten(1), dim=-1).view_as(inputs).sum(dim=1)

    def _scale(self, weights: Tensor, stack: Tensor, real: Tensor) -> Tensor:
        """By bisection, the scale at which the tokens' mean entropy is START · log L."""
        wanted = START * real.sum(dim=1).to(stack.dtype).log().mean()
        unit = 1 / spread(stack, real)  # makes inputs of standard deviation 1
        low, high = unit * 2.0**-20, unit * 2.0**6  # what no scale reaches ends there
        for _ in range(30):
            scale = (low * high).sqrt()
            flat = entropy(self._joint(weights * scale, stack, real)).mean() > wanted
            low, high = torch.where(flat, scale, low), torch.where(flat, high, scale)
        return (low * high).sqrt()


class HeadSelection(nn.Module):
    """SMaT's explainer: one weight for each head of each layer."""

    method = "smat"
    calibrated = True  # its scores have attention's own scale

    def __init__(self, config: PretrainedConfig, *, name: str) -> None:
        super().__init__()
        self.name = name
        shape = config.num_hidden_layers, config.num_attention_heads
        self.phi = nn.Parameter(torch.empty(shape))
        self.reset()

    @torch.no_grad()
    def reset(self) -> None:
        """φ = 1/(LH), so that every head has the same weight."""
        self.phi.fill_(1 / self.phi.numel())

    def read(self, classifier: Classifier, output: Output, mask: Tensor) -> Tensor:
        """[batch, layer, head, token]: mean score of a token over the queries that can see it."""
        means = []
        for view, h in zip(classifier.layers, output.hidden_states, strict=False):
            seen = visible_keys(view, mask) & (mask != 0)[:, None, :, None]  # no pad's query
            scores = attention_scores(view, h) * seen
            means.append(scores.sum(dim=2) / seen.sum(dim=2).clamp(min=1))
        return torch.stack(means, dim=1)

    def forward(self, read: Tensor, mask: Tensor) -> Explanation:
        """From what `read` gives and the mask [batch, token] of real tokens."""
        scores = torch.einsum("lh,blht->bt", self._weights(), read)
        return Explanation(scores.masked_fill(mask == 0, -torch.inf).softmax(dim=-1), None)

    def coefficients(self) -> dict[str, Tensor]:
        """w [layer, head]."""
        return {"weights": self._weights().detach()}

    def _weights(self) -> Tensor:
        return sparsemax(self.phi.flatten(), dim=-1).view_as(self.phi)


Explainer = InterpretableAttention | HeadSelection

_IVRA: dict[str, Callable[[PretrainedConfig], Explainer]] = {
    name: partial(InterpretableAttention, name=name, norm=norm, levels=levels)
    for norm, (suffix, levels) in product(
        NORMS, [("", LEVELS), *((f"-{level}", (level,)) for level in LEVELS)]
    )
    for name in (f"ivra-{norm}{suffix}",)
}
# "ivra-softmax", "ivra-sparsemax-head", …, and "smat": what `load_classifier(explainer=…)` knows.
EXPLAINERS: dict[str, Callable[[PretrainedConfig], Explainer]] = {
    **_IVRA,
    "smat": partial(HeadSelection, name="smat"),
}


def explainer_of(classifier: Classifier) -> Any:
    """The classifier's explainer; an error if it has none."""
    if classifier.explainer is None:
        raise ValueError(
            f"'{classifier.name}' has no learned attention; load or train it with "
            f"explainer=…, one of {', '.join(EXPLAINERS)}"
        )
    return classifier.explainer


def explain(classifier: Classifier, output: Output, mask: Tensor) -> Explanation:
    """What the classifier's explainer says of a forward pass, in its graph."""
    explainer = explainer_of(classifier)
    return explainer(explainer.read(classifier, output, mask), mask)


@torch.no_grad()
def calibrate(classifier: Classifier, inputs: dict[str, Tensor]) -> None:
    """Set the scales of a new explainer on one batch, without dropout; an old one keeps its own."""
    explainer = classifier.explainer
    if explainer is None or explainer.calibrated:
        return
    training = classifier.model.training
    classifier.eval()
    mask = inputs["attention_mask"]
    explainer.calibrate(explainer.read(classifier, classifier.forward(inputs), mask), mask)
    classifier.train(training)


def mean_query(q: Tensor, real: Tensor, causal: bool) -> Tensor:
    """Mean over real queries [batch, head, 1, dim], or over those at or after each token."""
    counted = real[:, None, :, None].to(q.dtype)
    total = q * counted
    if causal:
        total, counted = (x.flip(2).cumsum(dim=2).flip(2) for x in (total, counted))
    else:
        total, counted = (x.sum(dim=2, keepdim=True) for x in (total, counted))
    return total / counted.clamp(min=1)


def spread(stack: Tensor, real: Tensor) -> Tensor:
    """Standard deviation over a text's stack and tokens, mean over texts; [batch, stack, token]."""
    counted = real[:, None].expand_as(stack).to(stack.dtype)
    n = counted.sum(dim=(1, 2), keepdim=True)
    mean = (stack * counted).sum(dim=(1, 2), keepdim=True) / n
    variance = ((stack - mean).square() * counted).sum(dim=(1, 2), keepdim=True) / n
    return variance.sqrt().mean().clamp(min=1e-12)


def entropy(r: Tensor) -> Tensor:
    """−Σ_t r_t log r_t, [batch]: log L for a flat explanation, 0 for a single token."""
    return -(r * r.clamp(min=1e-12).log()).sum(dim=-1)
