"""Which part of a vector, layer by layer up to the logits, is owed to which token? (DecompX)

X[i, k] in R^D is the part of token i's state that is owed to input token k; X^0[i, k] = δ_ik E_i.
A bias b is divided among the parts by `absdot` (attributions.md §6):

    Y[i, k] += w_ik b,   w_ik = |Y[i, k]·b| / (Σ_k' |Y[i, k']·b| + 1e-12)

    U[i, k] = Σ_h W_O^h Σ_s A^h_is W_V^h X[s, k];   R = U + X, divide W_O b_V + b_O    (1)
    Y[i, k] = γ ⊙ C R[i, k] / s_i, divide β                                            (2)
    Z[i, k] = W_2 (θ_i ⊙ (W_1 Y[i, k], divide b_1)), divide b_2                        (3)
    X[i, k] = γ' ⊙ C (Y + Z)[i, k] / s'_i, divide β'                                   (4)
    O[k]    = W_c (τ ⊙ (W_p X^L[cls, k], divide b_p)), divide b_c                      (5)

s_i, s'_i, θ_i = σ(a_i)/(a_i + 1e-12) and τ come from the model's own states. Nothing is left out:
Σ_k X^ℓ[i, k] is the hidden state and Σ_k O[k] the logits.

What makes it cheap, without changing a number:
- (1) couples rows i but not sources k, and (2)–(4) couple sources but not rows: the first runs over
  blocks of sources, the others over blocks of rows, all in place. Memory is one X, N²·D.
- Heads are mixed before W_O, at width D instead of H·D.
- X^0 is diagonal, so that the first layer has N value vectors instead of N².
- Of the last layer only the read rows are made, and attention is applied before W_V there.
- (3) for row i is one D×D map W_2 diag(θ_i) W_1, which is the cheaper form for long texts; in both
  forms W_1 Y is divided by b_1 without being looked at: (W_1 Y)·b_1 = Y·(W_1ᵀ b_1).
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
from torch import Tensor, nn

from erlib.attributions.decomposition import (
    TextStates,
    chunk_size,
    free_for,
    post_norm_layers,
    single_texts,
    value_outputs,
)
from erlib.attributions.explained import explained
from erlib.attributions.registry import Request, Scores, register
from erlib.models.classifier import Classifier
from erlib.models.families import activation_of, family_of
from erlib.models.layers import LayerTrace, LayerView, Norm, layer_trace

TINY = 1e-12
REMEMBERED = 64 * 2**20  # bytes of decomposed texts


@register(
    "decompx",
    signed=False,
    scope="global",
    differentiable=False,
    needs=("attentions", "hidden_states"),
    per_layer=True,
    version=1,
)
@torch.no_grad()
def decompx(request: Request) -> Scores:
    """Length of the part of the read token's state that is owed to each token: ‖X^L[cls, t]‖₂."""
    layers = post_norm_layers(request.classifier, "decompx")
    read = request.classifier.read_position(request.mask).tolist()
    n_texts, width = request.mask.shape
    lengths = layers[0].output.weight.new_zeros(n_texts, len(layers), width)
    for text in single_texts(request):
        lengths[text.row, :, : text.length] = _read_parts(request, text, [read[text.row]]).lengths[
            0
        ]
    return Scores(lengths[:, -1], lengths if request.per_layer else None)


@register(
    "decompx_classifier",
    signed=True,
    scope="global",
    differentiable=False,
    needs=("attentions", "hidden_states"),
    version=1,
)
@torch.no_grad()
def decompx_classifier(request: Request) -> Scores:
    """Each token's signed share of the target's logit, biases included: Σ_t = the logit."""
    layers = post_norm_layers(request.classifier, "decompx_classifier")
    logit_shares = layers[0].output.weight.new_zeros(request.mask.shape)
    gaps = logit_shares.new_zeros(len(request.mask))
    for text in single_texts(request):
        parts, logit = _target_parts(request, text)
        logit_shares[text.row, : text.length] = parts
        gaps[text.row] = parts.sum() - logit[0]
    return Scores(logit_shares, completeness_gap=gaps)


def _target_parts(request: Request, text: TextStates) -> tuple[Tensor, Tensor]:
    """[token]: the parts of the explained logit, and that logit; see `explained`."""
    classifier, target = request.classifier, request.target[text.row]
    logit = explained(text.logits[None], target[None], request.mask[:1, : text.length], "logit")
    if classifier.task == "span":  # z_start is read at the answer's first token, z_end at its last
        x = _read_parts(request, text, target.tolist()).last
        start, end = (span_parts(classifier, parts) for parts in x)
        return start[:, 0] + end[:, 1], logit
    read = int(classifier.read_position(request.mask[text.row : text.row + 1]))
    x = _read_parts(request, text, [read]).last
    logits = class_parts(classifier, x[0], text.states[-1][read])
    if logits.shape[-1] == 1:  # one logit: z for class 1, −z for class 0
        return logits[:, 0] * (2 * target - 1), logit
    return logits[:, target], logit


def class_parts(classifier: Classifier, x: Tensor, state: Tensor) -> Tensor:
    """(5): [token, class], from the read token's parts x [token, D] and its state [D]."""
    family = family_of(classifier.family)
    dense = classifier.model.get_submodule(family.dense)
    out = classifier.model.get_submodule(family.out)
    a = dense(state)
    activation = activation_of(classifier.model.config, classifier.head)()
    slope = activation(a) / (a + TINY)
    pooled = divide(x @ dense.weight.T, dense.bias) * slope
    return divide(pooled @ out.weight.T, out.bias)


def span_parts(classifier: Classifier, x: Tensor) -> Tensor:
    """[token, 2]: parts of one token's start and end logits, from its parts x [token, D]."""
    out = classifier.model.get_submodule(family_of(classifier.family).span_out)
    if not isinstance(out, nn.Linear):
        raise ValueError(f"{classifier.name} has a span head that is more than a linear map")
    return divide(x @ out.weight.T, out.bias)


class ReadParts(NamedTuple):
    """What is kept of X for the rows that were asked for."""

    lengths: Tensor  # [read, layer, source]: ‖X^ℓ[i, k]‖₂
    last: Tensor  # [read, source, D]: X^L[i, k]


Decomposed = OrderedDict[tuple[object, ...], ReadParts]
_remembered: ContextVar[Decomposed | None] = ContextVar("remembered", default=None)


@contextmanager
def decompositions_remembered() -> Iterator[None]:
    """While open, a text that was decomposed is not decomposed again: DX and DX-C read the same X.

    For models whose weights do not change meanwhile; the last 64 MB are kept.
    """
    token = _remembered.set(OrderedDict())
    try:
        yield
    finally:
        _remembered.reset(token)


def _read_parts(request: Request, text: TextStates, reads: Sequence[int]) -> ReadParts:
    known = _remembered.get()
    if known is None:
        return _made_parts(request, text, reads)
    inputs = request.batch.inputs
    rows = tuple(tuple(ids[text.row, : text.length].tolist()) for ids in inputs.values())
    key = (weakref.ref(request.classifier.model), rows, tuple(reads))
    if key not in known:
        known[key] = _made_parts(request, text, reads)
    while len(known) > 1 and sum(parts.last.nbytes for parts in known.values()) > REMEMBERED:
        known.popitem(last=False)
    return known[key]


def _made_parts(request: Request, text: TextStates, reads: Sequence[int]) -> ReadParts:
    layers = request.classifier.layers
    rows, sources = chunks(layers[0], text.length, free_for(request))
    lengths, x = [], text.states[0]
    for x in decomposed(layers, text.states, text.attentions, reads, rows=rows, sources=sources):
        lengths.append(x.norm(dim=-1))
        request.progress(len(lengths), len(layers))
    return ReadParts(torch.stack(lengths, dim=1), x)


@torch.no_grad()
def decomposed(
    layers: Sequence[LayerView],
    states: Sequence[Tensor],
    attentions: Sequence[Tensor],
    reads: Sequence[int],
    *,
    rows: int,
    sources: int,
) -> Iterator[Tensor]:
    """X^ℓ[i, k] of one text for the rows i in `reads`, [read, source, D], layer after layer.

    states: the layers' inputs [token, D]; attentions: [head, query, key]; `rows` and `sources`: how
    many of each are worked on at once. All rows are made in all layers but the last.
    """
    everything = torch.arange(len(states[0]), device=states[0].device)
    asked = everything[list(reads)]
    x = states[0].new_empty(0)
    for number, (view, h, attention) in enumerate(zip(layers, states, attentions, strict=False)):
        wanted = asked if number == len(layers) - 1 else everything
        trace = layer_trace(view, h[None], attention[None])
        if number == 0:
            x = first_attention(view, h, attention, wanted, rows=rows)
            bias = view.output.bias  # b_V went with the values, by attention
        else:
            x = attend(view, x, attention, wanted, sources=sources)
            bias = view.output.weight @ view.value.bias + view.output.bias
        for start in range(0, len(wanted), rows):
            block = slice(start, start + rows)
            finish_rows(view, x[block], bias, trace, wanted[block])
        yield x if number == len(layers) - 1 else x[asked]


def first_attention(
    view: LayerView, h: Tensor, attention: Tensor, wanted: Tensor, *, rows: int
) -> Tensor:
    """(1) of the first layer, [row, source, D]: Σ_h A^h_ik W_O^h v^h_k + δ_ik E_i."""
    n, width = h.shape
    sent = value_outputs(view, h)  # [source, head, D]
    x = h.new_empty(len(wanted), n, width)
    for start in range(0, len(wanted), rows):
        i = wanted[start : start + rows]
        weights = attention[:, i].permute(2, 1, 0).contiguous()  # [source, row, head]
        x[start : start + rows] = (weights @ sent).transpose(0, 1)
    x[torch.arange(len(wanted), device=h.device), wanted] += h[wanted]
    return x


def attend(
    view: LayerView, x: Tensor, attention: Tensor, wanted: Tensor, *, sources: int
) -> Tensor:
    """(1) of a later layer without its bias, for the rows `wanted`; where all are, in place.

    For few rows it is cheaper to mix the H heads' inputs before W_V than to make all N² values.
    """
    n, width = len(x), x.shape[-1]
    if len(wanted) * view.n_heads < width:
        return torch.stack([_attend_one(view, x, attention[:, i], int(i)) for i in wanted])
    for start in range(0, n, sources):
        block = x[:, start : start + sources]
        value = (block @ view.value.weight.T).unflatten(-1, (view.n_heads, view.head_dim))
        value = value.permute(2, 0, 1, 3).flatten(2)  # [head, s, source · head_dim]
        mixed = (attention @ value).unflatten(-1, (-1, view.head_dim))
        block += mixed.permute(1, 2, 0, 3).flatten(2) @ view.output.weight.T
    return x if len(wanted) == n else x[wanted]


def _attend_one(view: LayerView, x: Tensor, weights: Tensor, row: int) -> Tensor:
    """(1) for one row, [source, D]; weights [head, s]."""
    mixed = (weights @ x.flatten(1)).unflatten(-1, x.shape[1:])  # [head, source, D]
    per_head = view.value.weight.unflatten(0, (view.n_heads, view.head_dim)).transpose(1, 2)
    return (mixed @ per_head).transpose(0, 1).flatten(1) @ view.output.weight.T + x[row]


def finish_rows(view: LayerView, x: Tensor, bias: Tensor, trace: LayerTrace, rows: Tensor) -> None:
    """The bias of (1) and steps (2) to (4), in place, for some rows x [row, source, D]."""
    divide(x, bias)
    normalise(x, view.norm1, trace.u1[0, rows])
    x += feed_forward(view, x, trace.pre_activation[0, rows])
    normalise(x, view.norm2, trace.u2[0, rows])


def normalise(x: Tensor, norm: Norm, u: Tensor) -> None:
    """(2), in place: a layer norm with the scale of the model's own states u [row, D]."""
    x -= x.mean(-1, keepdim=True)
    x *= (norm.weight / norm.scale(u))[:, None]
    divide(x, norm.bias)


def feed_forward(view: LayerView, y: Tensor, a: Tensor) -> Tensor:
    """(3), [row, source, D], for pre-activations a [row, inner]."""
    w1, w2 = view.up.weight, view.down.weight
    theta = view.activation(a) / (a + TINY)
    share = shares(y @ (w1.T @ view.up.bias))  # of b_1
    if row_map_is_cheaper(y.shape[1], *w2.shape):
        maps = (w2 * theta[:, None]).flatten(0, 1) @ w1  # W_2 diag(θ_i) W_1, row under row
        z = y @ maps.unflatten(0, (len(y), -1)).transpose(1, 2)
    else:
        z = (y @ w1.T).mul_(theta[:, None]) @ w2.T
    z.addcmul_(share[..., None], ((theta * view.up.bias) @ w2.T)[:, None])  # what b_1 becomes
    return divide(z, view.down.bias)


def row_map_is_cheaper(n: int, width: int, inner: int) -> bool:
    """Is W_2 diag(θ_i) W_1 worth making for a row of n vectors?"""
    return width * width * inner + n * width * width < 2 * n * width * inner


def divide(parts: Tensor, bias: Tensor) -> Tensor:
    """`absdot`, in place: a bias divided among parts [..., source, D]; returns the parts."""
    return parts.addcmul_(shares(parts @ bias)[..., None], bias)


def shares(dots: Tensor) -> Tensor:
    """|dots| as shares over the last axis, the sources; changes `dots`."""
    dots = dots.abs_()
    return dots.div_(dots.sum(-1, keepdim=True) + TINY)


def chunks(view: LayerView, n: int, available: int) -> tuple[int, int]:
    """(rows, sources) at once. X itself, N²·D, is needed whatever they are."""
    inner, width = view.up.weight.shape
    number = view.up.weight.element_size()
    # X; the states of a layer; what tokens send in the first layer and heads mix in the last
    fixed = number * n * (n * width + 8 * width + 3 * inner + 2 * view.n_heads * width)
    row_map = row_map_is_cheaper(n, width, inner)
    per_row = number * (2 * n * width + (width * (inner + width) if row_map else n * inner))
    per_source = number * 5 * n * width
    rows, sources = (
        chunk_size("decompx", n, n, fixed=fixed, each=each, available=available, least=least)
        for each, least in ((per_row, 4), (per_source, 8))
    )
    return rows, sources
