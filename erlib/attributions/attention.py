"""What do the attention weights themselves say?

Ā^ℓ is a layer's attention, mean over heads; the read token is the one the head looks at: [CLS], or
a decoder's last token. The BiLSTM has one map of one row, which is its read row.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from erlib.attributions.explained import explained
from erlib.attributions.registry import Request, Scores, register


@register("random", signed=True, scope="none", differentiable=False, needs=(), version=1)
def random(request: Request) -> Scores:
    """Normal draws, the same for a text in any batch: the floor for every other method."""
    scores = torch.zeros(request.mask.shape)
    for row, (seed, n) in enumerate(zip(request.seeds, request.mask.sum(1).tolist(), strict=True)):
        scores[row, :n] = torch.randn(n, generator=torch.Generator().manual_seed(seed))
    return Scores(scores)


@register(
    "attention",
    signed=False,
    scope="local",
    differentiable=True,
    needs=("attentions",),
    per_layer=True,
    version=1,
)
def attention(request: Request) -> Scores:
    """The read token's row of the last layer's attention, mean over heads: Ā^L[cls, t]."""
    layers = _read_rows(request, [a.mean(dim=1) for a in request.output.attentions])
    return Scores(layers[:, -1], layers if request.per_layer else None)


@register(
    "attention_all",
    signed=False,
    scope="global",
    differentiable=True,
    needs=("attentions",),
    version=1,
)
def attention_all(request: Request) -> Scores:
    """Attention received, mean over layers, heads and the text's own query rows."""
    maps = torch.stack([a.mean(dim=1) for a in request.output.attentions]).mean(dim=0)
    if request.options.rows == "read" or maps.shape[1] == 1:
        return Scores(_read_rows(request, [maps])[:, 0])
    real = request.mask.to(maps.dtype)  # [batch, query]
    return Scores((real[:, :, None] * maps).sum(dim=1) / real.sum(dim=1, keepdim=True))


@register(
    "rollout",
    signed=False,
    scope="global",
    differentiable=True,
    needs=("attentions",),
    per_layer=True,
    version=1,
)
def rollout(request: Request) -> Scores:
    """Attention with residuals, multiplied through the layers: R^L[cls, t]."""
    if request.classifier.family == "jwa":
        raise ValueError(
            "'rollout' multiplies the attention of one layer into the next, and 'jwa' has a single "
            "attention row and no layers; use 'attention'"
        )
    layers = _read_rows(request, rolled_out([a.mean(dim=1) for a in request.output.attentions]))
    return Scores(layers[:, -1], layers if request.per_layer else None)


def rolled_out(attentions: Sequence[Tensor]) -> list[Tensor]:
    """R^1 = Â^1, R^ℓ = Â^ℓ R^{ℓ−1}, with Â = (Ā + I) / its row sums, for Ā^ℓ [..., query, key].

    The sums are 2 but for dropout, after which rows of Ā no longer sum to one.
    """
    maps: list[Tensor] = []
    for a in attentions:
        residual = a + torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
        residual = residual / residual.sum(dim=-1, keepdim=True)
        maps.append(residual @ maps[-1] if maps else residual)
    return maps


@register(
    "scaled_attention",
    signed=True,
    scope="local",
    differentiable=True,
    needs=("attentions", "gradients"),
    version=1,
)
def scaled_attention(request: Request) -> Scores:
    """Last-layer attention times its gradient, each averaged over heads first: α∇α."""
    output = request.output
    f = explained(output.logits, request.target, request.mask, request.options.of)
    (gradient,) = torch.autograd.grad(f.sum(), output.attentions[-1])
    # mean of heads for both factors, not the mean of the products
    weight, slope = output.attentions[-1].mean(dim=1), gradient.mean(dim=1)
    return Scores(_read_rows(request, [weight * slope])[:, 0])


def _read_rows(request: Request, maps: Sequence[Tensor]) -> Tensor:
    """[batch, map, token]: the read token's row of maps [batch, query, key]."""
    return torch.stack([request.classifier.read_row(m, request.mask) for m in maps], dim=1)
