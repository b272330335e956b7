"""How is what a layer's attention adds to a token divided among the tokens it reads?

ALTI and DecompX both begin with the vector that token j sends to token i, and both hold vectors
for every pair of tokens, so that memory is what limits them. What they share is here: texts one at
a time and at their own length, the vectors, and how many pairs a memory budget allows at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from erlib.attributions.memory import memory_budget
from erlib.attributions.registry import Request
from erlib.models.classifier import Classifier, Output
from erlib.models.layers import LayerView, values

CACHE_BYTES = 8 * 2**20  # what stays in a processor's last-level cache is worked on fastest


def post_norm_layers(classifier: Classifier, method: str) -> list[LayerView]:
    """The layers of an encoder, or an error that says why the method has no meaning for a model."""
    if classifier.family == "jwa":
        raise ValueError(
            f"'{method}' follows vectors through Transformer layers, and 'jwa' has none; "
            "use 'attention' or a gradient method"
        )
    layers = classifier.layers
    if any(view.pre_norm for view in layers):
        raise ValueError(
            f"'{method}' does not apply to {classifier.family}: it divides the states that leave "
            "the layer norm after each block, and a pre-norm decoder adds to a residual stream "
            "that is not normalised; use 'attention', 'rollout' or a gradient method"
        )
    return layers


class TextStates(NamedTuple):
    """One forward pass of one text: L + 1 states [token, D], L maps [head, query, key]."""

    row: int  # in the batch
    states: list[Tensor]
    attentions: list[Tensor]
    logits: Tensor  # [class]; span: [token, 2]

    @property
    def length(self) -> int:
        """Real tokens, specials included."""
        return len(self.states[0])


def single_texts(request: Request) -> Iterator[TextStates]:
    """Each text of the batch without pads; one that has some is passed through the model alone, so
    that rounding does not depend on them either."""
    width = request.mask.shape[1]
    for row, n in enumerate(request.mask.sum(dim=1).tolist()):
        if n == width:
            yield _of_row(request.output, row, row)
            continue
        inputs = {name: ids[row : row + 1, :n] for name, ids in request.batch.inputs.items()}
        with torch.no_grad():
            alone = request.classifier.forward(inputs)
        yield _of_row(alone, 0, row)


def _of_row(output: Output, row: int, number: int) -> TextStates:
    states = [h[row].detach() for h in output.hidden_states]
    attentions = [a[row].detach() for a in output.attentions]
    return TextStates(number, states, attentions, output.logits[row].detach())


def value_outputs(view: LayerView, h: Tensor) -> Tensor:
    """[key, head, D]: W_O^h (W_V^h h_j + b_V^h), what token j sends through each head per unit of
    attention, for states h [key, D]."""
    per_head = view.output.weight.unflatten(1, (view.n_heads, view.head_dim)).permute(1, 2, 0)
    return (values(view, h[None])[0] @ per_head).transpose(0, 1).contiguous()


def free_for(request: Request) -> int:
    """Bytes left for vectors: the request's budget without the states and maps that are held."""
    budget = memory_budget(request.max_memory, request.mask.device)
    if request.max_memory is None:  # a share of what is free now, so after they were made
        return budget
    return budget - _bytes(request.output.attentions) - _bytes(request.output.hidden_states)


def _bytes(tensors: Sequence[Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)


def chunk_size(
    what: str, n: int, most: int, *, fixed: int, each: int, available: int, least: int = 1
) -> int:
    """How many of `most` to work on at once: `fixed` bytes are needed anyway, `each` per one.

    As many as the cache holds, since more are not faster, or `least`, below which matrix products
    are slow; but no more than there is memory for.
    """
    if fixed + each > available:
        raise ValueError(
            f"{what} needs {(fixed + each) / 1e6:.4g} MB for a text of {n} tokens and has "
            f"{max(0, available) / 1e6:.4g} MB; raise max_memory, lower batch_size or cut the text"
        )
    return min(most, max(least, CACHE_BYTES // each), (available - fixed) // each)
