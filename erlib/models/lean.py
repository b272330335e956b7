"""What does a classifier answer, where nobody looks inside? The same numbers for less.

Attention is one fused operation, which makes no map. Where a head reads the first token alone, of
the last layer nothing is made but that token's state (W_K and W_V alone are applied to all tokens),
and tokens that no other may see are left out: positions were added before the layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from erlib.models.layers import LayerView, Norm, feed_forward, rotated, split_heads, visible_keys


class LeanStack(nn.Module):
    """All layers of a model as one, in the place of its list of layers.

    `entry`: what they read, given or as the embedding block makes it; `first`: whether the head
    reads the first token alone.
    """

    def __init__(
        self, views: list[LayerView], mask: Tensor, entry: Tensor | None, *, first: bool
    ) -> None:
        super().__init__()
        self.views, self.mask, self.entry, self.first = views, mask, entry, first

    def forward(self, h: Tensor, *args: object, **kwargs: object) -> Tensor:
        """[B, T, D] → [B, T, D], or [B, 1, D] of the first token."""
        self.entry = h = h if self.entry is None else self.entry
        mask = self.mask
        if self.first and mask[:, 0].all():
            h, mask = seen_alone(h, mask)
        hidden = hidden_keys(self.views[0], mask)
        for number, view in enumerate(self.views, start=1):
            h = lean_layer(view, h, hidden, first=self.first and number == len(self.views))
        return h


def seen_alone(h: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """States and mask of the tokens that are seen, in their order; padded to the most of a text."""
    most = int(mask.count_nonzero(dim=1).max())
    if most == mask.shape[1]:
        return h, mask
    places = (mask == 0).byte().argsort(dim=1, stable=True)[:, :most]
    return h.gather(1, places[..., None].expand(-1, -1, h.shape[-1])), mask.gather(1, places)


def hidden_keys(view: LayerView, mask: Tensor) -> Tensor | None:
    """What is added to attention scores: the least finite number where a query cannot see a key.
    None where every one sees all."""
    if mask.all() and not view.causal:
        return None
    seen = visible_keys(view, mask) if view.causal else (mask != 0)[:, None, None, :]
    zeros = torch.zeros_like(seen, dtype=view.query.weight.dtype)
    return zeros.masked_fill(~seen, torch.finfo(zeros.dtype).min)


def lean_layer(view: LayerView, h: Tensor, hidden: Tensor | None, *, first: bool) -> Tensor:
    """`layer_output` (`erlib.models.layers`) without its map; of the first token alone, if so."""
    x = norm(view.norm1, h) if view.pre_norm else h
    k, v = split_heads(view, view.key(x)), split_heads(view, view.value(x))
    if first:
        h, x = h[:, :1], x[:, :1]
    q = split_heads(view, view.query(x))
    q, k = rotated(view, q), rotated(view, k)
    mixed = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=hidden, scale=view.scale)
    attended = h + view.output(mixed.transpose(1, 2).flatten(2))
    if view.pre_norm:
        return attended + feed_forward(view, norm(view.norm2, attended))[1]
    y = norm(view.norm1, attended)
    return norm(view.norm2, y + feed_forward(view, y)[1])


def norm(which: Norm, x: Tensor) -> Tensor:
    """The norm, as one operation where there is one."""
    if which.kind != "layer":
        return which(x)
    return nn.functional.layer_norm(x, x.shape[-1:], which.weight, which.bias, which.eps)


@contextmanager
def layers_replaced(body: nn.Module, layers: str, stack: LeanStack) -> Iterator[None]:
    """While open, a model's list of layers is this one stack."""
    place, _, name = layers.rpartition(".")
    parent = body.get_submodule(place)
    before = getattr(parent, name)
    setattr(parent, name, nn.ModuleList([stack]))
    try:
        yield
    finally:
        setattr(parent, name, before)
