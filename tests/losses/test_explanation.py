"""The explanation loss is the paper's (ER lens §3), token by token."""

from __future__ import annotations

import pytest
import torch

from erlib.config import term
from erlib.losses import Step, Weighted, build
from tests import tiny

TEXTS = [["a", "great", "film"], ["the", "plot", "is", "dull", "and", "bad"], ["the", "year"]]
RATIONALES = [[0, 1, 0], [0, 0, 0, 1, 0, 1], [0, 0]]


def step(model, texts=TEXTS, rationales=RATIONALES):
    rows = [
        {"id": str(i), "words": words, "label": i % 2, "rationale": bits}
        for i, (words, bits) in enumerate(zip(texts, rationales, strict=True))
    ]
    return Step(model, tiny.batch(model, rows))


def explanation(given):
    return build(term("explanation", guide="attention")).loss(given)["explanation"]


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
