"""How does relevance flow back, step by step, to what enters the first layer? (AttnLRP)

Layer-wise relevance propagation for Transformers (Achtibat et al., 2024). The relevance of a step's
output is handed to its inputs by the step's own rule, and every rule is a step made linear, with
coefficients from the model's own states (marked 0), in proportion to whose terms it hands back:

    linear maps, sums    as they are; a bias keeps what is its own
    y = σ(x)             (σ(x0)/x0) x, all of it passes                                  (1)
    y = Σ a · b          Σ (a b0 + a0 b) / 2, both factors get as much                   (2)
    y = softmax(x)       its first-order expansion at x0, whose constant is a bias       (3)
    norms, y = c / s     c / s0                                                          (4)

The linear network's gradient, in one backward pass, gives R_t = Σ_d h_td ∂f/∂h_td, h being what
enters the first layer. The coefficients stay in the graph: a loss can be built on R.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from erlib.attributions.explained import explained
from erlib.attributions.registry import Request, Scores, register
from erlib.models.classifier import Classifier
from erlib.models.families import activation_of, family_of
from erlib.models.layers import (
    LayerTrace,
    LayerView,
    Norm,
    attention_input,
    attention_scores,
    final_norm,
    layer_trace,
    rotated,
    split_heads,
)

TINY = 1e-12


@register(
    "attn_lrp",
    signed=True,
    scope="global",
    differentiable=True,
    needs=("embeddings",),
    version=1,
)
def attn_lrp(request: Request) -> Scores:
    """Relevance of the logit handed back through every step by its own rule, in one backward pass.

    A text's scores sum to its logit but for what biases and softmax keep.
    """
    h0 = request.output.hidden_states[0].detach()
    return Scores(relevance(request.classifier, h0, request.mask, request.target))


def relevance(
    classifier: Classifier, h0: Tensor, mask: Tensor, target: Tensor, *, create_graph: bool = False
) -> Tensor:
    """R [batch, token] of the target's logit for h0 [batch, token, D]; without dropout."""
    h = h0.detach().requires_grad_()
    f = explained(linear_logits(classifier, h, h0, mask), target, mask, "logit")
    (gradient,) = torch.autograd.grad(f.sum(), h, create_graph=create_graph)
    return (h0 * gradient).sum(dim=-1)


def linear_logits(classifier: Classifier, h: Tensor, h0: Tensor, mask: Tensor) -> Tensor:
    """The logits as a linear function of h with coefficients from h0; the model's own at h = h0."""
    if classifier.family == "jwa":
        raise ValueError(
            "'attn_lrp' has rules for the steps of a Transformer, and 'jwa' has an LSTM; use a "
            "gradient method"
        )
    if classifier.quirks:
        raise ValueError(
            f"'attn_lrp' rebuilds the model's layers, and {classifier.name} departs from them "
            f"({', '.join(classifier.quirks)}); use a gradient method"
        )
    for view in classifier.layers:
        own = layer_trace(view, h0, attention_scores(view, h0, mask).softmax(dim=-1))
        h, h0 = linear_layer(view, h, own), own.output
    norm = final_norm(classifier.model)
    if norm is not None:
        h, h0 = still(norm, h, h0), norm(h0)
    return _head(classifier, h, h0, mask)


def linear_layer(view: LayerView, h: Tensor, own: LayerTrace) -> Tensor:
    """A layer's output by the rules, for its input h, with coefficients from its own states."""
    x, x0 = h, attention_input(view, own.h)
    if view.pre_norm:
        x = still(view.norm1, h, own.u1)
    q, k, v = _heads(view, x)
    q0, k0, v0 = _heads(view, x0)
    s = view.scale * shared(q, k.transpose(-1, -2), q0, k0.transpose(-1, -2))
    s0, a0 = view.scale * q0 @ k0.transpose(-1, -2), own.attention
    change = s - s0
    a = a0 + a0 * (change - (a0 * change).sum(dim=-1, keepdim=True))  # eq. 3
    mixed = shared(a, v, a0, v0).transpose(1, 2).flatten(2)
    attended = h + view.output(mixed)
    if view.pre_norm:
        y = still(view.norm2, attended, own.u2)
        return attended + _feed_forward(view, y, own)
    y = still(view.norm1, attended, own.u1)
    return still(view.norm2, y + _feed_forward(view, y, own), own.u2)


def _heads(view: LayerView, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v of every head, [batch, head, token, head_dim]."""
    q, k, v = (split_heads(view, part(x)) for part in (view.query, view.key, view.value))
    return rotated(view, q), rotated(view, k), v


def _feed_forward(view: LayerView, y: Tensor, own: LayerTrace) -> Tensor:
    slope = _slope(view.activation, own.pre_activation)
    if view.gate is None:
        return view.down(view.up(y) * slope)
    g, g0 = view.gate(y) * slope, view.activation(own.pre_activation)
    return view.down((g * view.up(own.y2) + g0 * view.up(y)) / 2)  # eq. 2, of a pre-norm layer


def _slope(activation: Callable[[Tensor], Tensor], x0: Tensor) -> Tensor:
    """σ(x0)/x0."""
    return activation(x0) / (x0 + TINY)  # eq. 1


def shared(a: Tensor, b: Tensor, a0: Tensor, b0: Tensor) -> Tensor:
    """A product of matrices with half of each term owed to either factor."""
    return (a @ b0 + a0 @ b) / 2  # eq. 2


def still(norm: Norm, x: Tensor, x0: Tensor) -> Tensor:
    """A norm with the scale of x0."""
    return norm.weight * norm.centred(x) / norm.scale(x0) + norm.bias  # eq. 4


def _head(classifier: Classifier, h: Tensor, h0: Tensor, mask: Tensor) -> Tensor:
    """Logits of the last states."""
    family, part = family_of(classifier.family), classifier.model.get_submodule
    if classifier.task == "span":
        if not isinstance(out := part(family.span_out), nn.Linear):
            raise ValueError(f"{classifier.name} has a span head that is more than a linear map")
        return out(h)
    read, read0 = (classifier.read_row(states, mask) for states in (h, h0))
    dense, out = part(family.dense), part(family.out)
    if dense is out:  # a decoder's own head is one linear map
        return out(read)
    activation = activation_of(classifier.model.config, classifier.head)()
    return out(dense(read) * _slope(activation, dense(read0)))
