"""Oversights of the papers' code are switches that reproduce what they did."""

from __future__ import annotations

import pytest
import torch

from erlib.models import load_classifier
from tests import tiny


@pytest.mark.parametrize("family", ["bert", "roberta", "big_bird"])
def test_a_doubled_embedding_reads_the_embedding_block_s_own_output_again(family, tmp_path):
    plain = tiny.classifier(family).eval()
    plain.save_pretrained(tmp_path / "plain")
    doubled = load_classifier(str(tmp_path / "plain"), quirks=("double_embedding",))
    inputs = tiny.inputs(plain, tiny.TEXTS[:2])
    with torch.no_grad():
        once = plain.forward(inputs)
        expected = plain.forward(inputs, embeddings=once.entry)
        found = doubled.forward(inputs)
    torch.testing.assert_close(found.logits, expected.logits)
    torch.testing.assert_close(found.entry, once.entry)  # what the paper's code multiplies
    assert not torch.allclose(found.logits, once.logits, atol=1e-4)
    with torch.no_grad():
        replaced = doubled.forward(inputs, entry=once.entry)
    torch.testing.assert_close(replaced.logits, found.logits)


def test_a_saved_classifier_keeps_its_quirks(tmp_path):
    tiny.classifier("bert").save_pretrained(tmp_path / "plain")
    doubled = load_classifier(str(tmp_path / "plain"), quirks=("double_embedding",))
    doubled.save_pretrained(tmp_path / "doubled")
    assert load_classifier(str(tmp_path / "doubled")).quirks == ("double_embedding",)
    assert load_classifier(str(tmp_path / "plain")).quirks == ()


def test_bigbird_s_attention_depends_on_what_it_has_read_before_and_by_default_does_not(tmp_path):
    tiny.classifier("big_bird").save_pretrained(tmp_path)  # with blocks of 4 tokens
    inputs = {}
    for name, length in (("short", 20), ("long", 64)):
        ids = torch.tensor([[10 + (i * i) % 20 for i in range(length)]])
        inputs[name] = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}

    def long_after(first, **options):
        model = load_classifier(str(tmp_path), **options)
        torch.manual_seed(0)  # block-sparse attention draws its random blocks
        with torch.no_grad():
            model.forward(inputs[first])
            return model.forward(inputs["long"]).logits

    quirk = {"quirks": ("attention_by_order",)}
    assert not torch.allclose(long_after("long", **quirk), long_after("short", **quirk), atol=1e-6)
    torch.testing.assert_close(long_after("long"), long_after("short"))


def test_quirks_that_do_not_apply_are_refused(tmp_path):
    tiny.classifier("bert").save_pretrained(tmp_path / "bert")
    tiny.classifier("gpt2").save_pretrained(tmp_path / "gpt2")
    with pytest.raises(ValueError, match="unknown quirk 'double'"):
        load_classifier(str(tmp_path / "bert"), quirks=("double",))
    with pytest.raises(ValueError, match="only BigBird"):
        load_classifier(str(tmp_path / "bert"), quirks=("attention_by_order",))
    with pytest.raises(ValueError, match="no embedding block"):
        load_classifier(str(tmp_path / "gpt2"), quirks=("double_embedding",))
