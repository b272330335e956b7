from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from erlib.models.gate import gated
from tests import telling, tiny

QUESTION = [{"question": "which is best ?", "context": "a great film . dull .", "id": "q"}]


def gate_of(batch, seed=0):
    """Half of the words of every text, drawn; the first word is always taken away."""
    generator = torch.Generator().manual_seed(seed)
    kept = torch.rand(batch.special.shape, generator=generator) > 0.5
    kept.scatter_(1, (~batch.special).int().argmax(dim=1, keepdim=True), False)
    return (kept | batch.special).float()


@pytest.mark.parametrize("task", ["classify", "span"])
@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_gate_of_zeros_and_ones_is_the_attention_mask_in_every_family(family, task):
    model = tiny.classifier(family, task=task)
    batch = tiny.batch(model, QUESTION if task == "span" else [tiny.TEXTS[0], tiny.TEXTS[2]])
    real = batch.inputs["attention_mask"]
    for seed in range(3):
        gate = gate_of(batch, seed)
        masked = model.forward({**batch.inputs, "attention_mask": real * gate.long()})
        ours = model.forward(batch.inputs, gate=gate)
        seen = (real * gate).bool()
        torch.testing.assert_close(
            *(x.logits if task == "classify" else x.logits[seen] for x in (ours, masked))
        )
        for a, b in zip(ours.attentions, masked.attentions, strict=True):
            for text, kept in enumerate(seen):  # rows of words that were taken away mean nothing
                torch.testing.assert_close(a[text][:, kept], b[text][:, kept])
    whole, open_ = model.forward(batch.inputs), model.forward(batch.inputs, gate=real.float())
    torch.testing.assert_close(open_.logits, whole.logits)


def test_a_gate_is_added_log_m_where_that_is_finite():
    generator = torch.Generator().manual_seed(0)
    scores = 3 * torch.randn(2, 4, 5, 5, generator=generator)
    gate = torch.rand(2, 1, 1, 5, generator=generator)
    torch.testing.assert_close(
        gated(scores.softmax(dim=-1), gate), (scores + gate.log()).softmax(dim=-1)
    )


def test_first_and_second_derivatives_of_a_gate_are_difference_quotients():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(1, 2, 4, 4, dtype=torch.double, generator=generator, requires_grad=True)
    gate = torch.tensor([[[[1.0, 0.0, 0.5, 0.0]]]], dtype=torch.double, requires_grad=True)

    def probabilities(s, m):
        return gated(s.softmax(dim=-1), m)

    assert torch.autograd.gradcheck(probabilities, (scores, gate))
    assert torch.autograd.gradgradcheck(probabilities, (scores, gate))


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_the_gradient_of_a_gate_at_0_half_and_1_is_the_difference_quotient(family):
    """Of a text's log p, whose difference is COMP; in float64, for every word but a decoder's last,
    which it reads."""
    model = tiny.classifier(family)
    model.model.double()
    batch = tiny.batch(model, [tiny.TEXTS[2]])
    places = (~batch.special[0]).nonzero()[:-1, 0].tolist()
    # Llama's library takes its softmax in float32 whatever the model's type is
    h, tolerance = (1e-3, 5e-3) if family == "llama" else (1e-5, 1e-5)

    def log_p(gate):
        return model.forward(batch.inputs, gate=gate).logits.log_softmax(dim=-1)[0, 1]

    for level in (0.0, 0.5, 1.0):
        gate = torch.ones(batch.special.shape, dtype=torch.double)
        gate[0, places[::2]] = level  # some words at the level, the others whole
        gate[0, places[1]] = 0.0
        slopes = torch.autograd.grad(log_p(gate.requires_grad_()), gate)[0][0]
        assert slopes.isfinite().all()
        for place in places:
            if family in tiny.DECODERS and gate[0, : place + 1].max() == 0:
                continue  # the first words, taken away: see below
            step = torch.zeros_like(gate)
            step[0, place] = h
            quotient = (log_p(gate.detach() + step) - log_p(gate.detach() - step)) / (2 * h)
            expected = pytest.approx(quotient.item(), rel=tolerance, abs=tolerance / 10)
            assert slopes[place].item() == expected


def test_a_body_whose_attention_is_not_seen_is_an_error():
    model = tiny.classifier("bert")
    inputs = tiny.inputs(model)
    model.model.base_model.encoder.layer[1].forward = lambda h, *args, **kwargs: h
    with pytest.raises(RuntimeError, match="1 gated attention maps for 2 layers"):
        model.forward(inputs, gate=inputs["attention_mask"].float())


def test_a_query_that_has_lost_every_key_is_left_as_it_was():
    attention = torch.tensor([[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.25, 0.25, 0.5]])
    gate = torch.tensor([0.0, 0.0, 1.0], requires_grad=True)
    found = gated(attention, gate)
    assert found.tolist() == [[1, 0, 0], [0.25, 0.75, 0], [0, 0, 1]]
    (slope,) = torch.autograd.grad(found[:, 0].sum(), gate)
    assert slope.tolist() == [0.5, 0, 0]  # of the third query alone


def test_the_gradient_of_a_gate_ranks_words_as_leaving_each_out_does():
    """On a trained model, where a gate on the word embeddings gives .47."""
    model = telling.taught()
    found = []
    for row in telling.texts(20, 2):
        batch = tiny.batch(model, [row])
        places = (~batch.special[0]).nonzero()[:, 0]
        gate = torch.ones(batch.special.shape, requires_grad=True)
        log_p = model.forward(batch.inputs, gate=gate).logits.log_softmax(dim=-1)[0]
        chosen = log_p.argmax()
        (slope,) = torch.autograd.grad(log_p[chosen], gate)
        without = 1 - torch.eye(len(gate[0]))[places].long()
        inputs = {name: x.expand(len(places), -1) for name, x in batch.inputs.items()}
        with torch.no_grad():
            left = model.forward({**inputs, "attention_mask": without}).logits.log_softmax(dim=-1)
        effects = log_p[chosen].detach() - left[:, chosen]
        found.append(spearmanr(slope[0, places], effects).statistic)
    assert np.mean(found) > 0.7
