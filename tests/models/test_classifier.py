from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from erlib.models import Classifier, load_classifier
from erlib.models.classifier import last_real_token
from erlib.models.layers import layer_output
from tests import tiny

families = pytest.mark.parametrize("family", tiny.FAMILIES)
tasks = pytest.mark.parametrize("task", ["classify", "span"])


def library_inputs(model: Classifier, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    knows_types = model.family in ("bert", "electra", "big_bird")
    return {k: v for k, v in inputs.items() if k != "token_type_ids" or knows_types}


@families
def test_an_output_has_every_state_in_its_place(family: str) -> None:
    model = tiny.classifier(family, num_labels=3)
    inputs = tiny.inputs(model)
    n, t = inputs["input_ids"].shape
    output = model.forward(inputs)
    assert output.logits.shape == (n, 3)
    assert [a.shape for a in output.attentions] == [(n, tiny.HEADS, t, t)] * tiny.LAYERS
    assert [h.shape for h in output.hidden_states] == [(n, t, tiny.WIDTH)] * (tiny.LAYERS + 1)
    assert output.entry is output.hidden_states[0]
    looked_up = model.model.get_input_embeddings()(inputs["input_ids"])
    assert torch.equal(output.embeddings, looked_up)


@families
def test_the_librarys_own_call_gives_the_same_logits(family: str) -> None:
    model = tiny.classifier(family)
    inputs = tiny.inputs(model)
    theirs = model.model(**library_inputs(model, inputs)).logits
    torch.testing.assert_close(model.forward(inputs).logits, theirs, atol=1e-6, rtol=0)


@pytest.mark.parametrize("family", [f for f in tiny.FAMILIES if f != "big_bird"])
def test_the_librarys_span_call_gives_the_same_start_and_end(family: str) -> None:
    # BigBird's own would mask the question and guess where it ends.
    model = tiny.classifier(family, task="span")
    inputs = tiny.inputs(model)
    logits = model.forward(inputs).logits
    assert logits.shape == (*inputs["input_ids"].shape, 2)
    theirs = model.model(**library_inputs(model, inputs))
    both = torch.stack([theirs.start_logits, theirs.end_logits], dim=-1)
    real = inputs["attention_mask"] == 1  # RoBERTa gives pads another position
    torch.testing.assert_close(logits[real], both[real], atol=1e-6, rtol=0)


@families
@tasks
def test_padding_a_batch_leaves_a_texts_numbers_unchanged(family: str, task: str) -> None:
    model = tiny.classifier(family, task=task)
    together = model.forward(tiny.inputs(model))
    for i, text in enumerate(tiny.TEXTS):
        alone = model.forward(tiny.inputs(model, [text]))
        n = alone.entry.shape[1]
        logits = together.logits[i, :n] if task == "span" else together.logits[i]
        torch.testing.assert_close(logits, alone.logits[0], atol=1e-5, rtol=0)
        for a, b in zip(together.attentions, alone.attentions, strict=True):
            torch.testing.assert_close(a[i, :, :n, :n], b[0], atol=1e-5, rtol=0)
            assert not a[i, :, :n, n:].any()


@families
def test_given_back_its_own_embeddings_or_entry_it_says_the_same(family: str) -> None:
    model = tiny.classifier(family)
    inputs = tiny.inputs(model)
    output = model.forward(inputs)
    again = model.forward(inputs, embeddings=output.embeddings)
    assert torch.equal(again.logits, output.logits)
    assert torch.equal(again.entry, output.entry)  # positions are added once, not twice
    from_entry = model.forward(inputs, entry=output.entry)
    assert torch.equal(from_entry.logits, output.logits)
    assert from_entry.entry is output.entry


@families
def test_another_embedding_or_entry_changes_the_logits_and_the_hook_does_not_stay(
    family: str,
) -> None:
    model = tiny.classifier(family)
    inputs = tiny.inputs(model)
    output = model.forward(inputs)
    assert not torch.allclose(
        model.forward(inputs, embeddings=output.embeddings * 0).logits, output.logits
    )
    assert not torch.allclose(model.forward(inputs, entry=output.entry * 0).logits, output.logits)
    assert torch.equal(model.forward(inputs).logits, output.logits)


def test_the_entry_hook_is_removed_when_the_forward_fails() -> None:
    model = tiny.classifier("bert")
    inputs = tiny.inputs(model)
    output = model.forward(inputs)
    with pytest.raises(RuntimeError):
        model.forward(inputs, entry=output.entry[..., :5])
    assert torch.equal(model.forward(inputs).logits, output.logits)


def slope(function: Callable[[Tensor], Tensor], at: Tensor, along: Tensor, family: str) -> Tensor:
    """Central difference in double precision; Llama's norms and softmax stay in single."""
    eps = 3e-4 if family == "llama" else 1e-6
    at = at.detach()
    return (function(at + eps * along) - function(at - eps * along)) / (2 * eps)


def direction(like: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(like.shape, generator=generator, dtype=like.dtype)


def assert_slope(gradient: Tensor, along: Tensor, expected: Tensor, family: str) -> None:
    rtol = 1e-2 if family == "llama" else 1e-6
    torch.testing.assert_close((gradient * along).sum(), expected, atol=0, rtol=rtol)
    assert expected.abs() > 1e-4


@families
@pytest.mark.parametrize("site", ["embeddings", "entry"])
def test_the_gradient_at_embeddings_and_entry_is_the_finite_difference(
    family: str, site: str
) -> None:
    model = tiny.classifier(family)
    model.model.double()
    inputs = tiny.inputs(model)
    output = model.forward(inputs)
    value = getattr(output, site)
    (gradient,) = torch.autograd.grad(output.logits[0, 1], value)
    along = direction(value)

    def logit(v: Tensor) -> Tensor:
        return model.forward(inputs, **{site: v}).logits[0, 1]

    assert_slope(gradient, along, slope(logit, value, along, family), family)


@families
def test_the_gradient_at_the_last_attention_map_is_the_finite_difference(family: str) -> None:
    # The last layer is rebuilt from a changed map, and the library's modules do the rest.
    model = tiny.classifier(family)
    model.model.double()
    inputs = tiny.inputs(model)
    output = model.forward(inputs)
    last_layer = model.layers[-1]

    def logit(attention: Tensor) -> Tensor:
        states = layer_output(last_layer, output.hidden_states[-2], attention)
        body, top = model.model.base_model, model.model
        if family in tiny.DECODERS:
            states = (body.ln_f if family == "gpt2" else body.norm)(states)
            return top.score(states)[0, inputs["attention_mask"][0].sum() - 1, 1]
        if family == "bert":
            return top.classifier(body.pooler(states))[0, 1]
        if family == "distilbert":
            return top.classifier(top.pre_classifier(states[:, 0]).tanh())[0, 1]
        return top.classifier(states)[0, 1]

    attention = output.attentions[-1]
    (gradient,) = torch.autograd.grad(output.logits[0, 1], attention, retain_graph=True)
    along = direction(attention)
    assert_slope(gradient, along, slope(logit, attention, along, family), family)


@families
@tasks
def test_a_gradient_has_a_gradient(family: str, task: str) -> None:
    model = tiny.classifier(family, task=task)
    output = model.forward(tiny.inputs(model))
    sites = [output.embeddings, output.entry, output.attentions[-1]]
    gradients = torch.autograd.grad(output.logits.square().sum(), sites, create_graph=True)
    sum(g.abs().sum() for g in gradients).backward()
    touched = [p.grad for p in model.encoder_parameters() if p.grad is not None]
    assert len(touched) > len(model.encoder_parameters()) / 2
    assert all(g.isfinite().all() for g in touched)
    assert model.model.get_input_embeddings().weight.grad.abs().sum() > 0


def test_in_training_the_attention_maps_are_those_after_dropout() -> None:
    model = tiny.classifier("bert").train()
    inputs = tiny.inputs(model, [tiny.TEXTS[2]])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        dropped = model.forward(inputs).attentions[0]
    kept = dropped != 0
    assert 0 < (~kept).float().mean() < 0.25  # p = 0.1, and no pads in this text
    assert dropped.sum(-1).max() > 1.01  # what remains is scaled by 1 / (1 - p)
    torch.testing.assert_close(
        model.eval().forward(inputs).attentions[0].sum(-1), torch.ones(dropped.shape[:3])
    )


def test_fused_attention_is_refused_instead_of_returning_no_maps() -> None:
    model = tiny.classifier("bert")
    model.model.set_attn_implementation("sdpa")
    with pytest.raises(RuntimeError, match="0 attention maps for 2 layers.*eager"):
        model.forward(tiny.inputs(model))


@families
def test_the_er_head_is_dense_tanh_linear_without_dropout(family: str) -> None:
    model = tiny.classifier(family, head="er").train()
    names = dict(model.model.named_parameters())
    dense, out = {
        "bert": ("bert.pooler.dense", "classifier"),
        "distilbert": ("pre_classifier", "classifier"),
        "gpt2": ("score.dense", "score.out_proj"),
        "llama": ("score.dense", "score.out_proj"),
    }.get(family, ("classifier.dense", "classifier.out_proj"))
    inputs = tiny.inputs(model)
    output = model.forward(inputs)  # in training mode: a dropout in the head would show
    position = inputs["attention_mask"].sum(1) - 1 if family in tiny.DECODERS else [0, 0, 0]
    state = torch.stack([output.hidden_states[-1][i, p] for i, p in enumerate(position)])
    pooled = torch.tanh(state @ names[f"{dense}.weight"].T + names[f"{dense}.bias"])
    logits = pooled @ names[f"{out}.weight"].T + names[f"{out}.bias"]
    torch.testing.assert_close(output.pooled, pooled, atol=1e-6, rtol=0)
    torch.testing.assert_close(output.logits, logits, atol=1e-6, rtol=0)


@families
def test_the_agreement_head_is_dense_relu_linear_with_one_logit(family: str) -> None:
    model = tiny.classifier(family, head="agreement", specials=False)
    output = model.forward(tiny.inputs(model))
    assert output.logits.shape == (3, 1)
    assert output.pooled.min() == 0 < output.pooled.max()
    encoded = model.encode(["a great film"])[0]
    assert not any(encoded.special)


@families
def test_the_pooled_head_drops_a_tenth_of_the_pooled_vector_in_training(family: str) -> None:
    model = tiny.classifier(family, head="pooled")
    inputs = tiny.inputs(model)
    er = tiny.classifier(family, head="er")
    assert torch.equal(model.forward(inputs).logits, er.forward(inputs).logits)
    model.train()
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        pooled = torch.stack([model.forward(inputs).pooled for _ in range(40)])
    assert 0.06 < (pooled == 0).float().mean() < 0.14


def test_decoders_read_the_last_real_token_and_encoders_the_first() -> None:
    mask = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [1, 0, 1, 1]])
    assert last_real_token(mask).tolist() == [2, 0, 3]
    assert tiny.classifier("gpt2").read_position(mask).tolist() == [2, 0, 3]
    assert tiny.classifier("bert").read_position(mask).tolist() == [0, 0, 0]
    attention = torch.arange(48.0).reshape(3, 4, 4)  # [batch, query, key]
    rows = [attention[0, 2], attention[1, 0], attention[2, 3]]
    assert torch.equal(tiny.classifier("gpt2").read_row(attention, mask), torch.stack(rows))
    assert torch.equal(tiny.classifier("bert").read_row(attention, mask), attention[:, 0])


@families
@tasks
def test_head_and_encoder_parameters_are_disjoint_and_cover_all(family: str, task: str) -> None:
    model = tiny.classifier(family, task=task)
    head = {id(p) for p in model.head_parameters()}
    encoder = {id(p) for p in model.encoder_parameters()}
    assert head and encoder and not head & encoder
    assert head | encoder == {id(p) for p in model.model.parameters() if p.requires_grad}


@families
@tasks
def test_every_parameter_is_used(family: str, task: str) -> None:
    model = tiny.classifier(family, task=task)
    model.forward(tiny.inputs(model)).logits.square().sum().backward()
    unused = [name for name, p in model.model.named_parameters() if p.grad is None]
    assert unused == []


@families
@pytest.mark.parametrize("head", ["er", "pooled", "agreement", "span"])
def test_a_saved_classifier_comes_back_bit_for_bit(family: str, head: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"task": "span"} if head == "span" else {"head": head}
    if head in ("er", "pooled"):
        options["num_labels"] = 4
    model = tiny.classifier(family, specials=False, **options)
    inputs = tiny.inputs(model)
    model.save_pretrained(tmp_path / "not" / "yet")
    again = load_classifier(tmp_path / "not" / "yet")
    for attribute in ("family", "task", "head", "specials", "num_labels", "max_length"):
        assert getattr(again, attribute) == getattr(model, attribute), attribute
    mine, theirs = model.model.state_dict(), again.model.state_dict()
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[k], theirs[k]) for k in mine)
    assert torch.equal(model.forward(inputs).logits, again.forward(inputs).logits)
    assert model.encode(tiny.TEXTS, max_length=5) == again.encode(tiny.TEXTS, max_length=5)
    files = {file.name for file in (tmp_path / "not" / "yet").iterdir()}
    tokenizer = {"tokenizer.json", "tokenizer_config.json"}
    assert files == {"config.json", "model.safetensors", "erlib.json"} | tokenizer
