"""A pass without maps gives what the whole pass gives, and leaves the model as it was."""

from __future__ import annotations

import pytest
import torch

from erlib.data.encoding import collate
from erlib.models.lean import seen_alone
from tests import tiny

families = pytest.mark.parametrize("family", tiny.FAMILIES)


def inputs_with_a_hole(model):
    """Texts of several lengths, and in the longest one token in the middle that nobody sees."""
    given = tiny.inputs(model)
    given["attention_mask"][2, 3] = 0
    return given


def gradient(model, given, site, maps):
    """Logits, and what a fixed mixture of them says of the tensor at the site."""
    x = getattr(model.forward(given), site).detach().requires_grad_()
    output = model.forward(given, maps=maps, **{site: x})
    mixture = torch.linspace(-1, 1, output.logits.numel()).reshape(output.logits.shape)
    (found,) = torch.autograd.grad((output.logits * mixture).sum(), x)
    return output, found


@families
@pytest.mark.parametrize("task", ["classify", "span"])
@pytest.mark.parametrize("site", ["embeddings", "entry"])
def test_logits_and_gradients_are_those_of_the_whole_pass(family, task, site):
    model = tiny.classifier(family, task=task).eval()
    given = inputs_with_a_hole(model)
    whole, wanted = gradient(model, given, site, maps=True)
    lean, found = gradient(model, given, site, maps=False)
    assert len(whole.attentions) == tiny.LAYERS and lean.attentions == ()
    torch.testing.assert_close(lean.logits, whole.logits, rtol=1e-5, atol=1e-5)
    assert (found - wanted).abs().max() < 1e-5 * wanted.abs().max()
    torch.testing.assert_close(lean.embeddings, whole.embeddings, rtol=0, atol=0)
    torch.testing.assert_close(lean.entry, whole.entry, rtol=0, atol=0)


@families
def test_the_model_is_left_as_it_was_and_so_after_an_error(family):
    model = tiny.classifier(family).eval()
    given, names = tiny.inputs(model), list(model.model.state_dict())
    before = model.forward(given).logits
    model.forward(given, maps=False)
    with pytest.raises(RuntimeError):
        model.forward(given, maps=False, entry=torch.zeros(3, 4, tiny.WIDTH + 1))
    assert list(model.model.state_dict()) == names
    torch.testing.assert_close(model.forward(given).logits, before, rtol=0, atol=0)


def test_in_training_nothing_is_left_out_so_that_dropout_draws_as_it_did():
    model = tiny.classifier("bert").train()
    given = tiny.inputs(model)
    torch.manual_seed(0)
    whole = model.forward(given)
    torch.manual_seed(0)
    lean = model.forward(given, maps=False)
    assert len(lean.hidden_states) == len(whole.hidden_states)
    torch.testing.assert_close(lean.logits, whole.logits, rtol=0, atol=0)


def test_a_quirk_of_the_embedding_block_is_kept():
    model = tiny.classifier("bert", quirks=["double_embedding"]).eval()
    given = tiny.inputs(model)
    whole, lean = model.forward(given), model.forward(given, maps=False)
    torch.testing.assert_close(lean.logits, whole.logits, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(lean.entry, whole.entry, rtol=0, atol=0)


def test_a_text_of_its_own_length_is_answered_as_in_a_batch():
    model = tiny.classifier("bert").eval()
    texts = model.encode(tiny.TEXTS)
    together = model.forward(model.batch(texts).inputs, maps=False).logits
    alone = [model.forward(collate([t], 0).inputs, maps=False).logits for t in texts]
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-5, atol=1e-5)


def test_tokens_that_no_other_sees_are_left_out_and_get_no_gradient():
    model = tiny.classifier("bert").eval()
    text = model.encode(["the plot is dull and the acting is bad"])
    given = model.batch(text).inputs
    given["attention_mask"][0, [2, 5]] = 0
    h = model.forward(given).entry
    kept, mask = seen_alone(h, given["attention_mask"])
    seen = given["attention_mask"][0].bool()
    torch.testing.assert_close(kept[0], h[0, seen], rtol=0, atol=0)
    assert mask.shape == kept.shape[:2] and mask.all()
    _, found = gradient(model, given, "entry", maps=False)
    assert (found[0, ~seen] == 0).all() and (found[0, seen] != 0).any(dim=-1).all()
