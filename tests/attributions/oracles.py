"""ALTI and DecompX as one writes them down: every (head, query, key, D) vector in memory at once.

The truth for the chunked versions, and what the bench times them against. Written from the
equations of attributions.md §5 and 6 over the model's own modules; no code of erlib.attributions.
`alti_scores` and `decompx_scores` have the signature that `python -m erlib bench --against` calls.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from erlib.models import Classifier
from erlib.models.layers import LayerView


def alti_scores(classifier: Classifier, inputs: Mapping[str, Tensor]) -> Tensor:
    """[batch, token] of texts that all have the same length."""
    return torch.stack([alti(classifier, text)[1][-1][0] for text in _one_by_one(inputs)])


def decompx_scores(classifier: Classifier, inputs: Mapping[str, Tensor]) -> Tensor:
    """[batch, token] of texts that all have the same length."""
    read = [decompx(classifier, text)[-1][0] for text in _one_by_one(inputs)]
    return torch.stack(read).norm(dim=-1)


def _one_by_one(inputs: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    return [
        {name: ids[i : i + 1] for name, ids in inputs.items()}
        for i in range(len(inputs["input_ids"]))
    ]


@torch.no_grad()
def alti(classifier: Classifier, inputs: Mapping[str, Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """(C^ℓ, M^ℓ) of every layer, [query, key], for one text without pads."""
    output = classifier.forward(inputs)
    layers = zip(classifier.layers, output.hidden_states, output.attentions, strict=False)
    per_layer = [alti_layer(view, h[0], attention[0])[0] for view, h, attention in layers]
    rolled = [per_layer[0]]
    for c in per_layer[1:]:
        rolled.append(c @ rolled[-1])
    return per_layer, rolled


@torch.no_grad()
def alti_layer(view: LayerView, h: Tensor, attention: Tensor) -> tuple[Tensor, Tensor]:
    """(C, y) of one layer."""
    n, width = h.shape
    value = functional.linear(h, view.value.weight, view.value.bias).view(n, view.n_heads, -1)
    w_o = view.output.weight.view(width, view.n_heads, -1)
    sent = torch.einsum("jhe,dhe->hjd", value, w_o)
    f = (attention[..., None] * sent[:, None]).sum(0)  # over (H, N, N, D)
    f[range(n), range(n)] += h
    u = f.sum(1) + view.output.bias
    s = (u.var(-1, unbiased=False) + view.norm1.eps).sqrt()

    def centred(x: Tensor) -> Tensor:
        return view.norm1.weight * (x - x.mean(-1, keepdim=True))

    t = centred(f) / s[:, None, None]
    y = t.sum(1) + centred(view.output.bias) / s[:, None] + view.norm1.bias
    distance = (y[:, None] - t).abs().sum(-1)
    c = (y.abs().sum(-1, keepdim=True) - distance).clamp(min=0)
    total = c.sum(-1, keepdim=True)
    return torch.where(total > 0, c / total, torch.full_like(c, 1 / n)), y


@torch.no_grad()
def decompx(classifier: Classifier, inputs: Mapping[str, Tensor]) -> list[Tensor]:
    """X^1 … X^L, [row, source, D], for one text without pads."""
    output = classifier.forward(inputs)
    states = output.hidden_states
    n = states[0].shape[1]
    x = torch.eye(n, dtype=states[0].dtype)[..., None] * states[0][0]
    all_layers = []
    layers = zip(classifier.layers, output.attentions, strict=True)
    for number, (view, attention) in enumerate(layers):
        x = decompx_layer(view, x, attention[0], first=number == 0)
        all_layers.append(x)
    return all_layers


@torch.no_grad()
def decompx_layer(view: LayerView, x: Tensor, attention: Tensor, *, first: bool) -> Tensor:
    """One layer from its input's parts x [row, source, D]."""
    n, width = len(x), x.shape[-1]
    h = x.sum(1)
    value = x @ view.value.weight.T
    if first:  # b_V goes with each token's own value vector
        value[range(n), range(n)] += view.value.bias
    value = value.view(n, n, view.n_heads, -1)
    w_o = view.output.weight.view(width, view.n_heads, -1)
    sent = torch.einsum("skhe,dhe->hskd", value, w_o)  # (H, N, N, D)
    r = torch.einsum("his,hskd->ikd", attention, sent) + x
    bias = view.output.bias if first else view.output.weight @ view.value.bias + view.output.bias
    r = absdot(r, bias)

    value_h = functional.linear(h, view.value.weight, view.value.bias).view(n, view.n_heads, -1)
    mixed = torch.einsum("hij,jhe->ihe", attention, value_h).reshape(n, -1)
    u1 = functional.linear(mixed, view.output.weight, view.output.bias) + h
    y = _norm_parts(r, view.norm1, u1)
    y1 = functional.layer_norm(u1, (width,), view.norm1.weight, view.norm1.bias, view.norm1.eps)

    a = functional.linear(y1, view.up.weight, view.up.bias)
    gelu = view.activation(a)
    p = absdot(y @ view.up.weight.T, view.up.bias)
    z = absdot((p * (gelu / (a + 1e-12))[:, None]) @ view.down.weight.T, view.down.bias)
    u2 = y1 + functional.linear(gelu, view.down.weight, view.down.bias)
    return _norm_parts(y + z, view.norm2, u2)


def _norm_parts(parts: Tensor, norm, u: Tensor) -> Tensor:
    s = (u.var(-1, unbiased=False) + norm.eps).sqrt()[:, None, None]
    return absdot(norm.weight * (parts - parts.mean(-1, keepdim=True)) / s, norm.bias)


def absdot(parts: Tensor, bias: Tensor) -> Tensor:
    dots = (parts * bias).sum(-1).abs()
    share = dots / (dots.sum(-1, keepdim=True) + 1e-12)
    return parts + share[..., None] * bias
