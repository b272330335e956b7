"""How much does a token's vector turn when another token's value is taken away?

Value zeroing (Mohebbi et al., 2023). Per layer, with y_i the layer's output for token i and y_i^¬j
the same with the value of token j set to zero in every head, attention left as it is:

    C_ij = 1 − cos(y_i, y_i^¬j),  rows divided by their sum                        (1)
    M^ℓ  = C^ℓ M^{ℓ−1},  M^0 = I                                                   (2)

The layer's residual is inside y, so that no identity is added to C. A value of zero is a column of
attention of zero.
"""

from __future__ import annotations

import torch
from torch import Tensor

from erlib.attributions.decomposition import chunk_size, free_for, single_texts
from erlib.attributions.registry import Request, Scores, register
from erlib.models.layers import LayerView, layer_output

NUMBER = 4  # bytes of a float32


@register(
    "value_zeroing",
    signed=False,
    scope="global",
    differentiable=False,
    needs=("attentions", "hidden_states"),
    per_layer=True,
    version=1,
)
@torch.no_grad()
def value_zeroing(request: Request) -> Scores:
    """How far vectors turn when a token's value is zeroed, multiplied over layers: M^L[cls, t]."""
    classifier = request.classifier
    if classifier.family == "jwa":
        raise ValueError(
            "'value_zeroing' takes values out of Transformer layers, and 'jwa' has none; use "
            "'occlusion'"
        )
    layers, (n_texts, width) = classifier.layers, request.mask.shape
    read = classifier.read_position(request.mask).tolist()
    rows = layers[0].output.weight.new_zeros(n_texts, len(layers), width)
    for text in single_texts(request):
        n = text.length
        inner, dim = layers[0].up.weight.shape
        each = NUMBER * n * (3 * inner + 8 * dim + 2 * layers[0].n_heads * n)
        available = free_for(request)
        at_once = chunk_size(
            "value_zeroing", n, n, fixed=0, each=each, available=available, least=8
        )
        mixed = torch.eye(n, dtype=rows.dtype, device=rows.device)  # M^0
        for number, (view, h, a) in enumerate(
            zip(layers, text.states, text.attentions, strict=False)
        ):
            mixed = turned(view, h, a, at_once=at_once) @ mixed  # eq. 2
            rows[text.row, number, :n] = mixed[read[text.row]]
            request.progress(number + 1, len(layers))
    return Scores(rows[:, -1], rows if request.per_layer else None)


def turned(view: LayerView, h: Tensor, attention: Tensor, *, at_once: int) -> Tensor:
    """C [i, j] of one layer and text: h [token, D], attention [head, query, key].

    `at_once` tokens are zeroed in one pass. A token that nothing turns looks at all alike.
    """
    n = len(h)
    y = torch.nn.functional.normalize(layer_output(view, h[None], attention[None]), dim=-1)
    distances = []
    for zeroed in torch.eye(n, dtype=torch.bool, device=h.device).split(at_once):  # [j, key]
        without = attention.masked_fill(zeroed[:, None, None, :], 0.0)  # [j, head, query, key]
        y_j = layer_output(view, h.expand(len(zeroed), -1, -1), without)
        y_j = torch.nn.functional.normalize(y_j, dim=-1)
        distances.append((y - y_j).square().sum(dim=-1) / 2)  # 1 − cos of unit vectors
    c = torch.cat(distances).T
    total = c.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, c / total, 1 / n)
