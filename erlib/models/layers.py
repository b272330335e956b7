"""What is inside a Transformer layer, whatever its family calls it?

`LayerView` gives every family the same tensors in the same orientation, so that ALTI, DecompX,
SMaT and IvRA are written once. With h the layer's input, A its attention and N1, N2 its norms:

post-norm (BERT, RoBERTa, ELECTRA, DistilBERT, BigBird)
    u1 = h + Σ_h W_O^h A^h (W_V^h h + b_V^h) + b_O          y1 = N1(u1)
    u2 = y1 + W_2 σ(W_1 y1 + b_1) + b_2                     output = y2 = N2(u2)
pre-norm (GPT-2, Llama)
    u1 = h                                                  y1 = N1(u1)
    u2 = h + Σ_h W_O^h A^h (W_V^h y1 + b_V^h) + b_O         y2 = N2(u2)
    output = u2 + W_2 σ(W_1 y2 + b_1) + b_2

Llama's feed-forward is gated: W_2 (σ(W_g y) ⊙ W_1 y).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from erlib.models.families import body_of, family_of

if TYPE_CHECKING:
    from erlib.models.classifier import Classifier, Output


@dataclass(frozen=True)
class Linear:
    """y = W x + b, with W [out, in] and b [out]; a map without bias has a bias of zeros."""

    weight: Tensor
    bias: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight, self.bias)


@dataclass(frozen=True)
class Norm:
    """Layer norm (`kind="layer"`) or root-mean-square norm (`"rms"`, bias of zeros)."""

    weight: Tensor
    bias: Tensor
    eps: float
    kind: str

    def centred(self, x: Tensor) -> Tensor:
        """What is divided by the scale: x − mean(x) for layer norm, x itself for rms."""
        return x - x.mean(-1, keepdim=True) if self.kind == "layer" else x

    def scale(self, x: Tensor) -> Tensor:
        """[..., 1]: sqrt(var(x) + eps), or sqrt(mean(x²) + eps)."""
        return (self.centred(x).square().mean(-1, keepdim=True) + self.eps).sqrt()

    def __call__(self, x: Tensor) -> Tensor:
        return self.weight * self.centred(x) / self.scale(x) + self.bias


@dataclass(frozen=True)
class LayerView:
    """One layer's parameters. The tensors are views of the model's own: gradients reach it.

    `query`, `key`, `value` map [D] to [H · head_dim], heads in order; Llama's shared key and value
    heads are repeated, so that every head has its own. `output` maps back. `up` is W_1, `down`
    W_2; with a `gate`, the activation is applied to the gate and multiplies `up`.
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    norm1: Norm
    norm2: Norm
    up: Linear
    down: Linear
    gate: Linear | None
    activation: Callable[[Tensor], Tensor]
    n_heads: int
    head_dim: int
    scale: float  # attention scores are scale · q·k
    pre_norm: bool
    causal: bool
    rotary: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None  # (like, positions) → cos, sin


@dataclass(frozen=True)
class LayerNames:
    """Where a family's layer keeps its parts; `qkv` names one fused map in place of three."""

    query: str
    key: str
    value: str
    output: str
    norm1: str
    norm2: str
    up: str
    down: str
    activation: str
    attention: str  # the module that knows the scale
    gate: str | None = None
    qkv: str | None = None
    pre_norm: bool = False


_BERT = LayerNames(
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    output="attention.output.dense",
    norm1="attention.output.LayerNorm",
    norm2="output.LayerNorm",
    up="intermediate.dense",
    down="output.dense",
    activation="intermediate.intermediate_act_fn",
    attention="attention.self",
)

LAYER_NAMES: dict[str, LayerNames] = {
    "bert": _BERT,
    "roberta": _BERT,
    "electra": _BERT,
    "big_bird": _BERT,
    "distilbert": LayerNames(
        query="attention.q_lin",
        key="attention.k_lin",
        value="attention.v_lin",
        output="attention.out_lin",
        norm1="sa_layer_norm",
        norm2="output_layer_norm",
        up="ffn.lin1",
        down="ffn.lin2",
        activation="ffn.activation",
        attention="attention",
    ),
    "gpt2": LayerNames(
        query="",
        key="",
        value="",
        qkv="attn.c_attn",
        output="attn.c_proj",
        norm1="ln_1",
        norm2="ln_2",
        up="mlp.c_fc",
        down="mlp.c_proj",
        activation="mlp.act",
        attention="attn",
        pre_norm=True,
    ),
    "llama": LayerNames(
        query="self_attn.q_proj",
        key="self_attn.k_proj",
        value="self_attn.v_proj",
        output="self_attn.o_proj",
        norm1="input_layernorm",
        norm2="post_attention_layernorm",
        up="mlp.up_proj",
        gate="mlp.gate_proj",
        down="mlp.down_proj",
        activation="mlp.act_fn",
        attention="self_attn",
        pre_norm=True,
    ),
}


def layer_views(model: PreTrainedModel) -> list[LayerView]:
    """One view per layer of a supported model, first layer first."""
    family = family_of(model.config.model_type)
    body = body_of(model)
    return [_view(model, layer) for layer in body.get_submodule(family.layers)]


def final_norm(model: PreTrainedModel) -> Norm | None:
    """What a pre-norm family applies to the last layer's output; None for the others."""
    name = family_of(model.config.model_type).final_norm
    return None if name is None else _norm(body_of(model).get_submodule(name))


def _view(model: PreTrainedModel, layer: nn.Module) -> LayerView:
    config, names = model.config, LAYER_NAMES[model.config.model_type]
    part = layer.get_submodule
    n_heads = config.num_attention_heads
    output = _linear(part(names.output))
    head_dim = output.weight.shape[1] // n_heads
    if names.qkv is None:
        maps = [_linear(part(name)) for name in (names.query, names.key, names.value)]
    else:
        fused = _linear(part(names.qkv))
        rows = zip(fused.weight.chunk(3), fused.bias.chunk(3), strict=True)
        maps = [Linear(weight, bias) for weight, bias in rows]
    query, key, value = (_every_head(m, n_heads, head_dim) for m in maps)
    # BigBird's attention divides by sqrt(head_dim) in place and keeps no scale.
    scale = getattr(part(names.attention), "scaling", head_dim**-0.5)
    return LayerView(
        query=query,
        key=key,
        value=value,
        output=output,
        norm1=_norm(part(names.norm1)),
        norm2=_norm(part(names.norm2)),
        up=_linear(part(names.up)),
        down=_linear(part(names.down)),
        gate=None if names.gate is None else _linear(part(names.gate)),
        activation=part(names.activation),
        n_heads=n_heads,
        head_dim=head_dim,
        scale=scale,
        pre_norm=names.pre_norm,
        causal=family_of(config.model_type).decoder,
        rotary=getattr(body_of(model), "rotary_emb", None),
    )


def _linear(module: Any) -> Linear:
    weight = module.weight.T if isinstance(module, Conv1D) else module.weight  # Conv1D: [in, out]
    bias = module.bias if module.bias is not None else weight.new_zeros(weight.shape[0])
    return Linear(weight, bias)


def _every_head(linear: Linear, n_heads: int, head_dim: int) -> Linear:
    """Repeat key or value heads that several query heads share."""
    shared = n_heads * head_dim // linear.weight.shape[0]
    if shared == 1:
        return linear
    weight = linear.weight.unflatten(0, (-1, head_dim)).repeat_interleave(shared, 0).flatten(0, 1)
    bias = linear.bias.unflatten(0, (-1, head_dim)).repeat_interleave(shared, 0).flatten()
    return Linear(weight, bias)


def _norm(module: Any) -> Norm:
    if isinstance(module, nn.LayerNorm):
        return Norm(module.weight, module.bias, module.eps, "layer")
    return Norm(module.weight, torch.zeros_like(module.weight), module.variance_epsilon, "rms")


# The functions below are the equations above. States are [B, T, D], attention [B, H, T, T].


def split_heads(view: LayerView, x: Tensor) -> Tensor:
    """[B, T, H · head_dim] → [B, H, T, head_dim]."""
    return x.unflatten(-1, (view.n_heads, view.head_dim)).transpose(1, 2)


def attention_input(view: LayerView, h: Tensor) -> Tensor:
    """What query, key and value are applied to: h, or N1(h) in a pre-norm layer."""
    return view.norm1(h) if view.pre_norm else h


def queries_keys(view: LayerView, h: Tensor) -> tuple[Tensor, Tensor]:
    """q and k of every head [B, H, T, head_dim], as projected: not rotated, not scaled."""
    x = attention_input(view, h)
    return split_heads(view, view.query(x)), split_heads(view, view.key(x))


def values(view: LayerView, h: Tensor) -> Tensor:
    """v of every head, bias included, [B, H, T, head_dim]."""
    return split_heads(view, view.value(attention_input(view, h)))


def visible_keys(view: LayerView, attention_mask: Tensor) -> Tensor:
    """[B, 1, query, key] bool: keys that are real and, in a causal layer, not in the future."""
    n = attention_mask.shape[1]
    seen = (attention_mask != 0)[:, None, None, :].expand(-1, 1, n, n)
    return seen.tril() if view.causal else seen


def attention_scores(view: LayerView, h: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """Scores before softmax, scale · q·k, rotated where the family rotates, [B, H, query, key].

    With a mask, keys that a query cannot see (pads, and the future in a causal layer) have the
    least finite score; without one, scores stand for all pairs.
    """
    q, k = (rotated(view, x) for x in queries_keys(view, h))
    scores = view.scale * q @ k.transpose(-1, -2)
    if attention_mask is None:
        return scores
    return scores.masked_fill(~visible_keys(view, attention_mask), torch.finfo(scores.dtype).min)


def rotated(view: LayerView, x: Tensor) -> Tensor:
    """q or k [B, H, T, head_dim] with rotary positions, where the family has them: each pair
    (x_i, x_{i + d/2}) turned by its angle."""
    if view.rotary is None:
        return x
    cos, sin = view.rotary(x, torch.arange(x.shape[-2], device=x.device)[None])
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


@dataclass(frozen=True)
class LayerTrace:
    """The states inside one layer, named as in the equations of this module; all [B, T, …]."""

    h: Tensor  # input
    attention: Tensor  # [B, H, T, T]
    u1: Tensor  # what norm 1 reads (pre-norm: h)
    y1: Tensor  # N1(u1)
    pre_activation: Tensor  # what σ is applied to: W_1 y + b_1, or W_g y + b_g where gated
    u2: Tensor  # what norm 2 reads
    y2: Tensor  # N2(u2) (post-norm: the output)
    output: Tensor


def layer_trace(view: LayerView, h: Tensor, attention: Tensor) -> LayerTrace:
    """Rebuild a layer from its input and attention probabilities, without dropout."""
    mixed = attention @ values(view, h)
    attended = h + view.output(mixed.transpose(1, 2).flatten(2))
    if view.pre_norm:
        u1, y1, u2 = h, view.norm1(h), attended
        y2 = view.norm2(u2)
        a, fed = feed_forward(view, y2)
        return LayerTrace(h, attention, u1, y1, a, u2, y2, u2 + fed)
    u1, y1 = attended, view.norm1(attended)
    a, fed = feed_forward(view, y1)
    u2 = y1 + fed
    y2 = view.norm2(u2)
    return LayerTrace(h, attention, u1, y1, a, u2, y2, y2)


def feed_forward(view: LayerView, y: Tensor) -> tuple[Tensor, Tensor]:
    """(pre-activation, W_2 σ(W_1 y + b_1) + b_2)."""
    up = view.up(y)
    if view.gate is None:
        return up, view.down(view.activation(up))
    gate = view.gate(y)
    return gate, view.down(view.activation(gate) * up)


def layer_output(view: LayerView, h: Tensor, attention: Tensor) -> Tensor:
    """The layer's output for input h and attention probabilities."""
    return layer_trace(view, h, attention).output


def trace(
    classifier: Classifier, inputs: Mapping[str, Tensor], output: Output | None = None
) -> list[LayerTrace]:
    """The states inside every layer of one forward pass, in evaluation mode.

    Rebuilt from its hidden states and attention maps; pass `output` if that pass was already made.
    """
    if classifier.model.training:
        raise ValueError("a trace has no dropout: call classifier.eval() first")
    output = classifier.forward(inputs) if output is None else output
    states = zip(classifier.layers, output.hidden_states, output.attentions, strict=False)
    return [layer_trace(view, h, attention) for view, h, attention in states]
