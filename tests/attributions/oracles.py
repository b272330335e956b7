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


class Ledger:
    """Relevance handed back as one writes it down: R of a step's output in, R of its inputs out.

    What biases and softmax keep is put down in `kept`, so that nothing is lost unseen.
    """

    def __init__(self) -> None:
        self.kept = 0.0

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor, r: Tensor) -> Tensor:
        z = x @ weight.T + bias
        self.kept += float((bias * r / z).sum())
        return torch.einsum("td,jd,tj->td", x, weight, r / z)

    def norm(self, x: Tensor, weight: Tensor, bias: Tensor, eps: float, r: Tensor) -> Tensor:
        n = x.shape[-1]
        s = (x.var(-1, unbiased=False) + eps).sqrt()
        centring = torch.eye(n, dtype=x.dtype) - 1 / n
        rows = [self.linear(x[t : t + 1], weight[:, None] * centring / s[t], bias, r[t : t + 1])
                for t in range(len(x))]  # fmt: skip
        return torch.cat(rows)

    def softmax(self, x: Tensor, r: Tensor) -> Tensor:
        handed = x * (r - x.softmax(-1) * r.sum(-1, keepdim=True))
        self.kept += float(r.sum() - handed.sum())
        return handed

    @staticmethod
    def product(a: Tensor, b: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
        """Of a @ b: both factors of every term get half of what the term has."""
        terms = a[..., :, :, None] * b[..., None, :, :]  # [..., i, s, j]
        halves = terms * (r / (a @ b))[..., :, None, :] / 2
        return halves.sum(-1), halves.sum(-3)


@torch.no_grad()
def attn_lrp(classifier: Classifier, traces, dense, activation, out, target: int):
    """(R of what enters the first layer [token], what was kept) of one text; post-norm encoders."""
    ledger = Ledger()
    read = traces[-1].output[0][:1]
    a = dense(read)
    pooled = activation(a)
    r = torch.zeros(1, out.weight.shape[0], dtype=a.dtype)
    r[0, target] = out(pooled)[0, target]
    r = ledger.linear(pooled, out.weight, out.bias, r)  # activations hand on all that they get
    r = ledger.linear(read, dense.weight, dense.bias, r)
    relevance = torch.zeros_like(traces[-1].output[0])
    relevance[:1] = r
    for view, trace in reversed(list(zip(classifier.layers, traces, strict=True))):
        h, attention = trace.h[0], trace.attention[0]
        n = len(h)
        r = ledger.norm(trace.u2[0], view.norm2.weight, view.norm2.bias, view.norm2.eps, relevance)
        share = trace.y1[0] / trace.u2[0]
        straight, r = r * share, r * (1 - share)
        r = ledger.linear(
            view.activation(trace.pre_activation[0]), view.down.weight, view.down.bias, r
        )
        r = straight + ledger.linear(trace.y1[0], view.up.weight, view.up.bias, r)
        r = ledger.norm(trace.u1[0], view.norm1.weight, view.norm1.bias, view.norm1.eps, r)
        share = h / trace.u1[0]
        straight, r = r * share, r * (1 - share)

        def heads(linear, h=h, view=view):
            return (
                (h @ linear.weight.T + linear.bias).view(len(h), view.n_heads, -1).transpose(0, 1)
            )

        q, k, v = heads(view.query), heads(view.key), heads(view.value)
        mixed = (attention @ v).transpose(0, 1).reshape(n, -1)
        r = ledger.linear(mixed, view.output.weight, view.output.bias, r)
        r_attention, r_v = ledger.product(attention, v, r.view(n, view.n_heads, -1).transpose(0, 1))
        scores = view.scale * q @ k.transpose(-1, -2)
        r_scores = ledger.softmax(scores, r_attention)
        r_q, r_k = ledger.product(q * view.scale, k.transpose(-1, -2), r_scores)
        relevance = straight
        for linear, part in (
            (view.query, r_q),
            (view.key, r_k.transpose(-1, -2)),
            (view.value, r_v),
        ):
            part = part.transpose(0, 1).reshape(n, -1)
            relevance = relevance + ledger.linear(h, linear.weight, linear.bias, part)
    return relevance.sum(-1), ledger.kept
