from __future__ import annotations

import pytest
import torch

from erlib.models.layers import (
    attention_scores,
    layer_output,
    queries_keys,
    trace,
    values,
    visible_keys,
)
from tests import tiny

families = pytest.mark.parametrize("family", tiny.FAMILIES)


def own_layers(model):
    """The library's layer modules, in order."""
    body = model.model.base_model
    for path in ("encoder.layer", "transformer.layer", "h", "layers"):
        try:
            return list(body.get_submodule(path))
        except AttributeError:
            continue
    raise AssertionError("no layers found")


def layer_outputs(model, inputs):
    """What each layer module returned, caught by hooks: not through the library's capture."""
    caught = []
    hooks = [
        layer.register_forward_hook(
            lambda _, args, out: caught.append(out[0] if isinstance(out, tuple) else out)
        )
        for layer in own_layers(model)
    ]
    output = model.forward(inputs)
    for hook in hooks:
        hook.remove()
    return output, caught


@families
def test_each_layers_output_is_rebuilt_from_the_views_parts(family: str) -> None:
    model = tiny.classifier(family)
    inputs = tiny.inputs(model)
    output, caught = layer_outputs(model, inputs)
    for view, h, attention, expected in zip(
        model.layers, output.hidden_states, output.attentions, caught, strict=False
    ):
        torch.testing.assert_close(layer_output(view, h, attention), expected, atol=1e-5, rtol=0)
    assert len(model.layers) == len(caught) == tiny.LAYERS


@families
def test_attention_probabilities_are_the_softmax_of_the_scores(family: str) -> None:
    model = tiny.classifier(family)
    inputs = tiny.inputs(model)
    output = model.forward(inputs)
    for view, h, attention in zip(
        model.layers, output.hidden_states, output.attentions, strict=False
    ):
        scores = attention_scores(view, h, inputs["attention_mask"])
        torch.testing.assert_close(scores.softmax(-1), attention, atol=1e-5, rtol=0)


@families
def test_scores_without_a_mask_agree_where_keys_are_visible(family: str) -> None:
    model = tiny.classifier(family)
    inputs = tiny.inputs(model)
    view, h = model.layers[0], model.forward(inputs).entry
    masked = attention_scores(view, h, inputs["attention_mask"])
    bare = attention_scores(view, h)
    seen = visible_keys(view, inputs["attention_mask"]).expand_as(bare)
    assert torch.equal(masked[seen], bare[seen])
    assert bare.abs().max() < 1e4 < masked[~seen].abs().min()


def test_visible_keys_are_real_and_for_decoders_not_in_the_future() -> None:
    mask = torch.tensor([[1, 1, 0]])
    encoder, decoder = (tiny.classifier(f).layers[0] for f in ("bert", "gpt2"))
    assert visible_keys(encoder, mask)[0, 0].int().tolist() == [[1, 1, 0]] * 3
    assert visible_keys(decoder, mask)[0, 0].int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]


@families
def test_queries_keys_and_values_are_those_the_layers_own_maps_give(family: str) -> None:
    model = tiny.classifier(family)
    h = model.forward(tiny.inputs(model)).entry
    layer, view = own_layers(model)[0], model.layers[0]
    if family == "gpt2":
        parts = layer.attn.c_attn(layer.ln_1(h)).split(tiny.WIDTH, dim=2)
    elif family == "llama":
        own, x = layer.self_attn, layer.input_layernorm(h)
        shared = [m(x).unflatten(-1, (2, -1)) for m in (own.k_proj, own.v_proj)]
        parts = [own.q_proj(x), *(s[:, :, [0, 0, 1, 1]].flatten(2) for s in shared)]
    elif family == "distilbert":
        own = layer.attention
        parts = [own.q_lin(h), own.k_lin(h), own.v_lin(h)]
    else:
        own = layer.attention.self
        parts = [own.query(h), own.key(h), own.value(h)]
    ours = [*queries_keys(view, h), values(view, h)]
    for mine, theirs in zip(ours, parts, strict=True):
        assert mine.shape == (3, tiny.HEADS, h.shape[1], tiny.WIDTH // tiny.HEADS)
        torch.testing.assert_close(mine.transpose(1, 2).flatten(2), theirs, atol=1e-5, rtol=0)


@families
def test_gradients_through_the_view_reach_the_models_own_parameters(family: str) -> None:
    model = tiny.classifier(family)
    output = model.forward(tiny.inputs(model))
    view, layer = model.layers[0], own_layers(model)[0]
    h = output.entry.detach()
    attention = attention_scores(view, h).softmax(-1)
    layer_output(view, h, attention).square().sum().backward()
    without = [name for name, p in layer.named_parameters() if p.grad is None]
    assert without == []
    assert all(p.grad.abs().sum() > 0 for name, p in layer.named_parameters() if p.ndim == 2)


@families
def test_a_step_of_the_optimiser_is_seen_by_the_next_view(family: str) -> None:
    model = tiny.classifier(family)
    before = model.layers[0].query.weight.detach().clone()
    with torch.no_grad():
        for parameter in model.model.parameters():
            parameter += 1
    torch.testing.assert_close(model.layers[0].query.weight, before + 1)


@families
def test_a_trace_names_the_states_inside_each_layer(family: str) -> None:
    model = tiny.classifier(family)
    inputs = tiny.inputs(model)
    layer = own_layers(model)[1]
    bert = ("attention.output.LayerNorm", "output.LayerNorm", "intermediate.intermediate_act_fn")
    names = {
        "gpt2": ("ln_1", "ln_2", "mlp.act"),
        "llama": ("input_layernorm", "post_attention_layernorm", "mlp.act_fn"),
        "distilbert": ("sa_layer_norm", "output_layer_norm", "ffn.activation"),
    }.get(family, bert)
    seen: dict[str, tuple] = {}
    hooks = [
        layer.get_submodule(name).register_forward_hook(
            lambda _, args, out, name=name: seen.update({name: (args[0], out)})
        )
        for name in names
    ]
    output = model.forward(inputs)
    for hook in hooks:
        hook.remove()
    traced = trace(model, inputs, output)[1]
    norm1, norm2, activation = (seen[name] for name in names)
    for mine, theirs in (
        (traced.u1, norm1[0]),
        (traced.y1, norm1[1]),
        (traced.u2, norm2[0]),
        (traced.y2, norm2[1]),
        (traced.pre_activation, activation[0]),
    ):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=0)
    assert traced.attention is output.attentions[1]
    assert traced.h is output.hidden_states[1]


def test_a_decoders_last_hidden_state_is_its_last_layers_output_after_the_final_norm() -> None:
    for family, norm in (("gpt2", "ln_f"), ("llama", "norm")):
        model = tiny.classifier(family)
        inputs = tiny.inputs(model)
        last = trace(model, inputs)[-1].output
        final = model.model.base_model.get_submodule(norm)(last)
        expected = model.forward(inputs).hidden_states[-1]
        torch.testing.assert_close(final, expected, atol=1e-5, rtol=0)


def test_a_trace_in_training_mode_is_refused() -> None:
    model = tiny.classifier("bert").train()
    with pytest.raises(ValueError, match=r"eval\(\)"):
        trace(model, tiny.inputs(model))
