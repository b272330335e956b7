"""How much does each token contribute to another's vector, by how near it comes to it? (ALTI)

Per layer, with F_i(j) the vector that token j adds to token i before the first layer norm, residual
included, and T_i(j) the same after it (attributions.md §5):

    F_i(j) = Σ_h A^h_ij W_O^h v^h_j + δ_ij h_i                                (1)
    T_i(j) = diag(γ) C F_i(j) / s_i                                           (2)
    y_i    = Σ_j T_i(j) + diag(γ) C b_O / s_i + β                             (3)
    c_ij   = max(0, ‖y_i‖₁ − ‖y_i − T_i(j)‖₁),  C_ij = c_ij / Σ_j c_ij        (4)
    M^ℓ    = C^ℓ M^{ℓ−1},  M^0 = I                                            (5)

Layer norm's linear part diag(γ) C is applied to the N·H vectors W_O^h v^h_j instead of the N²
vectors F_i(j), and (1)–(4) run over blocks of pairs (i, j), so that memory is pairs · D.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from erlib.attributions.decomposition import (
    chunk_size,
    free_for,
    post_norm_layers,
    single_texts,
    value_outputs,
)
from erlib.attributions.registry import Request, Scores, register
from erlib.models.layers import LayerView, values

QUERIES = 64  # in a block of pairs: enough for fast products, few enough for many keys


@register(
    "alti",
    signed=False,
    scope="global",
    differentiable=False,
    needs=("attentions", "hidden_states"),
    per_layer=True,
    version=1,
)
@torch.no_grad()
def alti(request: Request) -> Scores:
    """Token contributions by distance between vectors, multiplied over layers: M^L[cls, t]."""
    layers = post_norm_layers(request.classifier, "alti")
    read = request.classifier.read_position(request.mask).tolist()
    n_texts, width = request.mask.shape
    rows = layers[0].output.weight.new_zeros(n_texts, len(layers), width)
    for text in single_texts(request):
        pairs = pairs_at_once(layers[0], text.length, free_for(request))
        rolled = rolled_out(layers, text.states, text.attentions, read[text.row], pairs=pairs)
        for number, row in enumerate(rolled):
            rows[text.row, number, : text.length] = row
            request.progress(number + 1, len(layers))
    return Scores(rows[:, -1], rows if request.per_layer else None)


def rolled_out(
    layers: Sequence[LayerView],
    states: Sequence[Tensor],
    attentions: Sequence[Tensor],
    read: int,
    *,
    pairs: int,
) -> Iterator[Tensor]:
    """The read row of M^ℓ of one text, [token], layer after layer.

    states: the layers' inputs [token, D], what follows is not looked at; attentions: [head, query,
    key]. Of the last layer only the read row is made.
    """
    last = len(layers) - 1
    mixed = torch.eye(len(states[0]), dtype=states[0].dtype, device=states[0].device)  # M^0
    for i, view in enumerate(layers):
        queries = slice(read, read + 1) if i == last else slice(None)
        c = contributions(view, states[i], attentions[i], queries=queries, pairs=pairs)
        mixed = c @ mixed  # (5)
        yield mixed[-1 if i == last else read]


def contributions(
    view: LayerView,
    h: Tensor,
    attention: Tensor,
    *,
    queries: slice = slice(None),
    pairs: int,
) -> Tensor:
    """[query, key]: C of one layer for the rows `queries`, so many (query, key) pairs at a time."""
    norm = view.norm1
    # diag(γ) C of W_O^h v^h_j, [key, head, D], and of the residual h_i
    sent = norm.centred(value_outputs(view, h)).mul_(norm.weight)
    kept = (norm.weight * norm.centred(h))[queries]
    mixed = attention[:, queries] @ values(view, h[None])[0]
    u = h[queries] + view.output(mixed.transpose(0, 1).flatten(1))
    y, s = norm(u), norm.scale(u)  # (3): the model's own layer norm, s = sqrt(var + eps)

    # ‖y_i − T_i(j)‖ = ‖s_i y_i − s_i T_i(j)‖ / s_i; the residual is in T_i(i) alone
    weights = attention[:, queries].permute(2, 1, 0)  # [key, query, head]
    distance = _distances(weights, sent, s * y, pairs)
    row = torch.arange(len(y), device=h.device)
    asked = torch.arange(len(h), device=h.device)[queries]
    own = (weights[asked, row][:, None] @ sent[queries])[:, 0] + kept
    distance[row, asked] = (s * y - own).abs().sum(-1)
    distance /= s
    closeness = (y.abs().sum(-1, keepdim=True) - distance).clamp(min=0)  # (4)
    total = closeness.sum(-1, keepdim=True)
    # A row in which no token comes nearer than nothing: uniform (ours; the reference has NaN).
    return torch.where(total > 0, closeness / total, 1 / len(h))


def _distances(weights: Tensor, sent: Tensor, whole: Tensor, pairs: int) -> Tensor:
    """[query, key]: ‖whole_i − Σ_h weights_jih sent_jh‖₁, in blocks of at most so many pairs."""
    distance = whole.new_empty(len(whole), len(sent))
    n_queries = min(QUERIES, pairs)
    n_keys = pairs // n_queries
    for i in range(0, len(whole), n_queries):
        at = slice(i, i + n_queries)
        for j in range(0, len(sent), n_keys):
            keys = slice(j, j + n_keys)
            block = weights[keys, at].contiguous()
            beside = torch.baddbmm(
                whole[at].expand(len(block), -1, -1), block, sent[keys], alpha=-1
            )
            distance[at, keys] = beside.abs_().sum(-1).T
    return distance


def pairs_at_once(view: LayerView, n: int, available: int) -> int:
    """(query, key) pairs at once: each holds a vector and its weights."""
    width, number = view.output.weight.shape[0], view.output.weight.element_size()
    return chunk_size(
        "alti",
        n,
        n * n,
        fixed=number * n * (3 * view.n_heads * width + 4 * n),
        each=number * (width + 2 * view.n_heads),
        available=available,
    )
