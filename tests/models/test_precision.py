"""In training, a pass may be bfloat16 inside; what leaves it, and what is not training, is not."""

from __future__ import annotations

from dataclasses import fields

import pytest
import torch

from erlib.config import Term, term
from erlib.losses import Step, build
from erlib.models import precision
from erlib.models.precision import training_in
from tests import tiny

LABELS = [1, 0, 0]
OBJECTIVES = [
    term("task"),
    *(term("explanation", guide=g) for g in ("attention", "rollout", "input_x_gradient")),
    *(term("guided", guide=g, points=3) for g in ("integrated_gradients", "deeplift", "saliency")),
    term("input_gradient"),
    term("virtual_adversarial"),
    term("salience", kl="paper", salience_of="uniform"),
    term("conicity"),
    term("tying"),
    *(term(name) for name in ("comprehensiveness", "sufficiency", "consistency")),
]


def made(family: str = "bert", **options: object) -> Step:
    model = tiny.classifier(family, **options).eval()
    rows = [
        {"id": str(i), "words": text, "label": label}
        for i, (text, label) in enumerate(zip(tiny.TEXTS, LABELS, strict=True))
    ]
    return Step(model, tiny.batch(model, rows))


def products(step: Step) -> set[torch.dtype]:
    """What the linear maps of the body put out in one pass."""
    seen: set[torch.dtype] = set()
    hooks = [
        module.register_forward_hook(lambda m, args, output: seen.add(output.dtype))
        for module in step.classifier.model.base_model.modules()
        if isinstance(module, torch.nn.Linear)
    ]
    step.classifier.forward(step.batch.inputs)
    for hook in hooks:
        hook.remove()
    return seen


def test_products_are_bfloat16_inside_of_training_and_float32_outside() -> None:
    step = made()
    assert products(step) == {torch.float32}
    with training_in("bf16", "cpu"):
        assert products(step) == {torch.bfloat16}
    with training_in("fp32", "cpu"):
        assert products(step) == {torch.float32}
    assert products(step) == {torch.float32}


def test_an_error_in_training_ends_the_precision_too() -> None:
    with pytest.raises(KeyError), training_in("bf16", "cpu"):
        raise KeyError
    assert products(made()) == {torch.float32}


def test_what_a_loss_computes_itself_is_float32() -> None:
    step, a = made(), torch.rand(3, 3)
    with training_in("bf16", "cpu"):
        step.forward()
        assert (a @ a).equal(a.matmul(a)) and (a @ a).dtype == torch.float32


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_all_that_a_pass_shows_is_float32_and_close_to_the_full_pass(family: str) -> None:
    step = made(family)
    gate = torch.ones(step.mask.shape)
    gate[:, 1] = 0
    for options in ({}, {"gate": gate}):
        full = step.classifier.forward(step.batch.inputs, **options)
        with training_in("bf16", "cpu"):
            half = step.classifier.forward(step.batch.inputs, **options)
        for part in fields(half):
            pair = getattr(full, part.name), getattr(half, part.name)
            for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in pair), strict=True):
                assert b.dtype == torch.float32, part.name
                assert (a - b).norm() < 0.03 * a.norm(), part.name
        assert not full.logits.equal(half.logits)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_the_entry_is_in_the_graph_and_has_a_second_derivative(family: str) -> None:
    """ELECTRA's embedding block ends in a product; a cast beside the graph would have no slope."""
    step, slopes = made(family), []
    for name in ("fp32", "bf16"):
        with training_in(name, "cpu"):
            output = step.classifier.forward(step.batch.inputs)
        (slope,) = torch.autograd.grad(output.logits[:, 0].sum(), output.entry, create_graph=True)
        weights = step.classifier.encoder_parameters()
        twice = torch.autograd.grad(slope.square().sum(), weights, allow_unused=True)
        slopes.append(torch.cat([t.flatten() for t in (slope, *twice) if t is not None]))
    assert torch.cosine_similarity(*slopes, dim=0) > 0.99


@pytest.mark.parametrize("chosen", OBJECTIVES, ids=lambda t: "-".join([t.name, *_words(t)]))
def test_a_loss_and_its_gradient_are_close_to_those_in_float32_and_not_the_same(
    chosen: Term,
) -> None:
    values, slopes = [], []
    for name in ("fp32", "bf16"):
        step = made(explainer="ivra-softmax")
        step.batch.rationale = torch.zeros(step.mask.shape)
        step.batch.rationale[:, 1] = 1
        step.batch.has_rationale = torch.ones(len(step.mask))
        loss = build(chosen)
        if chosen.name == "salience":
            loss.fit(step.classifier.encode(tiny.TEXTS, labels=LABELS))
        torch.manual_seed(0)  # of the perturbation
        with training_in(name, "cpu"):
            value = sum(loss.loss(step).values())
            assert value.dtype == torch.float32
            value.backward()
        weights = step.classifier.encoder_parameters()
        values.append(value.item())
        slopes.append(torch.cat([w.grad.flatten() for w in weights if w.grad is not None]))
    # the search for a perturbation begins at 1e-5, which bfloat16 does not see beside 1
    rel, least = (0.1, 0.9) if chosen.name == "virtual_adversarial" else (0.05, 0.97)
    assert values[0] == pytest.approx(values[1], rel=rel)
    assert values[0] != values[1]
    assert torch.cosine_similarity(*slopes, dim=0) > least
    assert slopes[1].dtype == torch.float32


def _words(t: Term) -> list[str]:
    return [value for _, value in t.options if isinstance(value, str)]


def test_tf32_is_set_while_training_and_then_what_it_was() -> None:
    products = torch.backends.cuda.matmul
    before = products.fp32_precision
    with training_in("tf32", "cuda"):
        assert products.fp32_precision == "tf32"
    assert products.fp32_precision == before
    with pytest.raises(KeyError), training_in("tf32", "cuda:1"):
        raise KeyError
    assert products.fp32_precision == before != "tf32"


def test_tf32_is_refused_on_a_cpu() -> None:
    with pytest.raises(ValueError, match="the device is 'cpu': take precision='fp32' or 'bf16'"):
        training_in("tf32", "cpu").__enter__()


def test_bf16_warns_once_where_the_cpu_has_no_instructions_for_it(monkeypatch) -> None:
    precision.warn_if_slow.cache_clear()
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_f": True})
    precision.warn_if_slow("fp32", "cpu")
    with pytest.warns(UserWarning, match="slower than 'fp32'") as seen:
        precision.warn_if_slow("bf16", "cpu")
        precision.warn_if_slow("bf16", "cpu")
    assert len(seen) == 1
    precision.warn_if_slow.cache_clear()
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": True})
    precision.warn_if_slow("bf16", "cpu")
    precision.warn_if_slow.cache_clear()
