"""The explanation loss is the paper's (ER lens §3), token by token."""

from __future__ import annotations

import pytest
import torch

from erlib.attributions import attribute
from erlib.config import term
from erlib.losses import Step, Weighted, build
from erlib.losses import explanation as explanation_module
from tests import tiny

TEXTS = [["a", "great", "film"], ["the", "plot", "is", "dull", "and", "bad"], ["the", "year"]]
RATIONALES = [[0, 1, 0], [0, 0, 0, 1, 0, 1], [0, 0]]


def step(model, texts=TEXTS, rationales=RATIONALES):
    rows = [
        {"id": str(i), "words": words, "label": i % 2, "rationale": bits}
        for i, (words, bits) in enumerate(zip(texts, rationales, strict=True))
    ]
    return Step(model, tiny.batch(model, rows))


def explanation(given, guide="attention"):
    return build(term("explanation", guide=guide)).loss(given)["explanation"]


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_attention_guidance_equals_the_equation_written_out_token_by_token(family):
    model = tiny.classifier(family).eval()
    given = step(model)
    attention = model.forward(given.batch.inputs).attentions[-1]  # [batch, head, query, key]
    total, tokens = 0.0, 0
    for b in range(2):  # the third text has no rationale and does not count
        n = int(given.mask[b].sum())
        read = n - 1 if family in tiny.DECODERS else 0
        row = [
            sum(attention[b, h, read, t].item() for h in range(tiny.HEADS)) / tiny.HEADS
            for t in range(n)
        ]
        weights = [
            torch.exp(torch.tensor(100 * (x - max(row)), dtype=torch.float64)).item() for x in row
        ]
        bits = given.batch.rationale[b, :n].tolist()
        total += sum(
            abs(w / sum(weights) - e / sum(bits)) for w, e in zip(weights, bits, strict=True)
        )
        tokens += n
    assert explanation(given).item() == pytest.approx(total / tokens, rel=1e-4)


def test_specials_and_pieces_count_as_the_paper_says():
    model = tiny.classifier("bert").eval()
    batch = step(model, [["unfunny"]], [[1]]).batch
    assert batch.rationale.tolist()[0][0] == 0 == batch.rationale.tolist()[0][-1]  # [CLS], [SEP]
    assert sum(batch.rationale.tolist()[0]) == batch.inputs["input_ids"].shape[1] - 2 > 1


def test_a_batch_without_any_rationale_has_loss_zero():
    model = tiny.classifier("bert").eval()
    assert explanation(step(model, TEXTS[2:], RATIONALES[2:])).item() == 0


def test_padding_a_text_leaves_its_loss_as_it_is():
    model = tiny.classifier("bert").eval()
    alone = explanation(step(model, TEXTS[:1], RATIONALES[:1]))
    padded = explanation(step(model, [TEXTS[0], TEXTS[2] * 8], [RATIONALES[0], RATIONALES[2] * 8]))
    assert padded.item() == pytest.approx(alone.item(), abs=1e-6)


def test_the_gradient_agrees_with_finite_differences():
    model = tiny.classifier("bert").eval()
    model.model.double()
    given = step(model)
    weight = next(
        p for n, p in model.model.named_parameters() if n.endswith("1.attention.self.query.weight")
    )
    model.model.zero_grad()
    explanation(given).backward()
    for index in [(0, 0), (3, 5), (7, 2)]:
        h = 1e-6
        with torch.no_grad():
            weight[index] += h
            up = explanation(step(model)).item()
            weight[index] -= 2 * h
            down = explanation(step(model)).item()
            weight[index] += h
        assert weight.grad[index].item() == pytest.approx((up - down) / (2 * h), rel=1e-4, abs=1e-9)


def test_terms_share_one_forward_pass_and_add_up_with_their_weights(monkeypatch):
    model = tiny.classifier("bert").eval()
    given, calls = step(model), []
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda *a, **k: calls.append(1) or forward(*a, **k))
    losses = Weighted([term("task"), term("explanation", 0.6, guide="attention")]).loss(given)
    assert len(calls) == 1
    total = losses["task"] + 0.6 * losses["explanation"]
    assert losses["loss"].item() == pytest.approx(total.item(), abs=1e-7)


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="unknown guide 'atention'; did you mean 'attention'"):
        build(term("explanation", guide="atention"))
    with pytest.raises(ValueError, match="unknown objective 'explain'; did you mean 'explanation'"):
        build(term("explain"))


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_rollout_guidance_compares_the_rolled_out_read_row_with_the_spread_rationale(family):
    model = tiny.classifier(family).eval()
    given = step(model)
    maps = [a.mean(dim=1) for a in model.forward(given.batch.inputs).attentions]
    total, tokens = 0.0, 0
    for b in range(2):  # the third text has no rationale and does not count
        n = int(given.mask[b].sum())
        rolled = torch.eye(n)
        for a in maps:
            mixed = a[b, :n, :n] + torch.eye(n)
            rolled = (mixed / mixed.sum(dim=-1, keepdim=True)) @ rolled
        bits = given.batch.rationale[b, :n]
        row = rolled[n - 1 if family in tiny.DECODERS else 0]
        total += (row - bits / bits.sum()).abs().sum().item()
        tokens += n
    assert explanation(given, "rollout").item() == pytest.approx(total / tokens, rel=1e-4)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_ixg_guidance_compares_the_attribution_of_the_gold_class_with_the_bits(family):
    """The truth is the method `input_x_gradient` in the paper's variant, text by text."""
    model = tiny.classifier(family).eval()
    texts = [" ".join(words) for words in TEXTS]
    found = attribute(
        model, texts, "input_x_gradient", variant="er_lens", labels=[0, 1, 0], level="token"
    )
    given = step(model)
    total = sum(
        abs(score - bit)
        for one, bits in zip(found, given.batch.rationale.tolist(), strict=True)
        for score, bit in zip(one.scores, bits, strict=False)
    )
    tokens = sum(len(one.scores) for one in found)  # of all three texts
    assert explanation(given, "input_x_gradient").item() == pytest.approx(total / tokens, rel=1e-4)


@pytest.mark.parametrize("guide", explanation_module.GUIDES)
def test_the_gradient_of_each_explanation_loss_agrees_with_finite_differences(guide):
    """In float64 and along random directions of all weights; rollout and IxG go through the model
    again (for IxG its second derivatives)."""
    model = tiny.classifier("bert").eval()
    model.model.double()
    weights = [p for p in model.model.parameters() if p.requires_grad]
    loss = explanation(step(model), guide)
    gradients = torch.autograd.grad(loss, weights, allow_unused=True)
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        direction = [torch.randn(p.shape, generator=generator, dtype=p.dtype) for p in weights]
        slope = sum(
            (g * d).sum() for g, d in zip(gradients, direction, strict=True) if g is not None
        )
        values = []
        for move in (1e-6, -2e-6):  # there, then to the other side
            with torch.no_grad():
                for p, d in zip(weights, direction, strict=True):
                    p += move * d
            values.append(explanation(step(model), guide).item())
        with torch.no_grad():
            for p, d in zip(weights, direction, strict=True):
                p += 1e-6 * d
        difference = (values[0] - values[1]) / 2e-6
        assert abs(difference) > 1e-5  # the direction matters
        assert slope.item() == pytest.approx(difference, rel=1e-4)


def test_the_losses_of_several_guides_have_names_of_their_own_or_are_refused():
    given = step(tiny.classifier("bert").eval())
    named = [term("explanation", 0.0, guide=g, logged=g) for g in ("attention", "rollout")]
    losses = Weighted([term("task"), *named]).loss(given)
    assert losses["attention"].item() == explanation(given).item()
    assert losses["rollout"].item() == explanation(given, "rollout").item()
    assert losses["loss"].item() == losses["task"].item()
    unnamed = [term("explanation", guide=g) for g in ("attention", "rollout")]
    with pytest.raises(ValueError, match="two terms .* a loss named 'explanation'"):
        Weighted(unnamed).loss(given)
