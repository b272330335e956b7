from __future__ import annotations

from pathlib import Path

import pytest
import torch

from erlib.models import Classifier, load_classifier
from tests import tiny


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    """Six vectors of size four; one word has a blank in it and one a capital, as in GloVe 840B."""
    words = ["the", "film", ". .", "Film", "great", "dull"]
    lines = [f"{w} " + " ".join(f"{i + d / 10:.1f}" for d in range(4)) for i, w in enumerate(words)]
    path = tmp_path / "glove.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def model(glove: Path) -> Classifier:
    return load_classifier("jwa", glove=glove, head="agreement", seed=0)


TEXTS = ["The great film", "dull", "a dull great great film"]


def test_the_equations_by_hand(model: Classifier) -> None:
    inputs = tiny.inputs(model, ["the great film"])
    output = model.forward(inputs)
    net, x = model.model, output.embeddings
    o, _ = net.lstm(x)
    e = torch.tanh(o @ net.attention.weight.T + net.attention.bias) @ net.score.weight[0]
    a = e.exp() / e.exp().sum()
    h = (a[..., None] * o).sum(1)
    logits = h @ net.classifier.weight.T + net.classifier.bias
    torch.testing.assert_close(output.attentions[0][:, 0, 0], a)
    torch.testing.assert_close(output.pooled, h)
    torch.testing.assert_close(output.logits, logits)
    assert output.logits.shape == (1, 1)
    assert output.hidden_states[0] is x
    torch.testing.assert_close(output.hidden_states[1], o)
    assert o.shape == x.shape  # tying compares them


def test_padding_changes_nothing_and_pads_get_no_attention(model: Classifier) -> None:
    together = model.forward(tiny.inputs(model, TEXTS))
    for i, text in enumerate(TEXTS):
        alone = model.forward(tiny.inputs(model, [text]))
        n = alone.entry.shape[1]
        torch.testing.assert_close(together.logits[i], alone.logits[0], atol=1e-6, rtol=0)
        torch.testing.assert_close(
            together.attentions[0][i, ..., :n], alone.attentions[0][0], atol=1e-6, rtol=0
        )
        assert not together.attentions[0][i, ..., n:].any()
        assert not together.hidden_states[1][i, n:].any()


def test_embeddings_and_entry_replace_the_lookup(model: Classifier) -> None:
    inputs = tiny.inputs(model, TEXTS)
    output = model.forward(inputs)
    for site in ("embeddings", "entry"):
        again = model.forward(inputs, **{site: output.embeddings})
        assert torch.equal(again.logits, output.logits)
        changed = model.forward(inputs, **{site: output.embeddings * 0})
        assert not torch.allclose(changed.logits, output.logits)


def test_gradients_and_their_gradients_reach_embeddings_and_attention(model: Classifier) -> None:
    output = model.forward(tiny.inputs(model, TEXTS))
    sites = [output.embeddings, output.attentions[0]]
    gradients = torch.autograd.grad(output.logits.square().sum(), sites, create_graph=True)
    sum(g.abs().sum() for g in gradients).backward()
    assert all(g.abs().sum() > 0 for g in gradients)
    assert model.model.embedding.weight.grad.abs().sum() > 0


def test_a_glove_file_gives_its_lower_case_words_in_order(model: Classifier) -> None:
    vocabulary = model.tokenizer.get_vocab()
    assert sorted(vocabulary, key=vocabulary.get) == [
        "<pad>", "<unk>", "the", "film", ". .", "great", "dull",
    ]  # fmt: skip
    table = model.model.embedding.weight
    torch.testing.assert_close(table[3], torch.tensor([1.0, 1.1, 1.2, 1.3]))
    torch.testing.assert_close(table[1], table[2:].mean(0))
    assert not table[0].any()
    encoded = model.encode(["The unheard film"])[0]
    assert encoded.input_ids == [2, 1, 3]
    assert not any(encoded.special)


def test_word_counts_choose_the_vocabulary(glove: Path) -> None:
    counts = {"dull": 9, "film": 9, "unheard": 50, "great": 1}
    model = load_classifier("jwa", glove=glove, word_counts=counts, seed=0)
    ids = model.tokenizer.convert_tokens_to_ids(["dull", "film", "great", "the"])
    assert ids == [2, 3, 4, 1]


def test_words_are_counted_without_their_punctuation(glove: Path) -> None:
    model = load_classifier("jwa", glove=glove, word_counts={"great!": 2, "Dull,": 3}, seed=0)
    assert model.tokenizer.convert_tokens_to_ids(["dull", "great", "film"]) == [2, 3, 1]


def test_a_damaged_glove_line_is_named(glove: Path) -> None:
    glove.write_text(glove.read_text() + "bad 1.0 x 2.0 3.0\n")
    with pytest.raises(ValueError, match=r"glove.txt, line 7: not a word and its 4 numbers"):
        load_classifier("jwa", glove=glove)


@pytest.mark.parametrize("options", [{"head": "agreement"}, {"num_labels": 3}])
def test_a_saved_jwa_comes_back_bit_for_bit(glove: Path, tmp_path: Path, options: dict) -> None:
    model = load_classifier("jwa", glove=glove, seed=0, **options)
    model.save_pretrained(tmp_path / "saved")
    again = load_classifier(tmp_path / "saved")
    for attribute in ("family", "task", "head", "specials", "num_labels", "note", "max_length"):
        assert getattr(again, attribute) == getattr(model, attribute), attribute
    inputs = tiny.inputs(model, TEXTS)
    assert torch.equal(model.forward(inputs).logits, again.forward(inputs).logits)
    assert model.encode(TEXTS) == again.encode(TEXTS)
    with pytest.raises(ValueError, match="is a saved jwa with num_labels"):
        load_classifier(tmp_path / "saved", num_labels=7)


def test_seeds_fix_the_new_weights(glove: Path) -> None:
    first, again, other = (load_classifier("jwa", glove=glove, seed=s) for s in (1, 1, 2))
    pairs = zip(first.model.parameters(), again.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not torch.equal(first.model.score.weight, other.model.score.weight)


def test_head_and_encoder_parameters_are_disjoint_and_cover_all(model: Classifier) -> None:
    head = {id(p) for p in model.head_parameters()}
    encoder = {id(p) for p in model.encoder_parameters()}
    assert not head & encoder
    assert head | encoder == {id(p) for p in model.model.parameters()}


def test_what_a_bilstm_has_not_is_refused(model: Classifier) -> None:
    with pytest.raises(ValueError, match="no Transformer layers"):
        _ = model.layers
    with pytest.raises(ValueError, match="no task='span'"):
        load_classifier("jwa", task="span")


def test_without_a_file_it_takes_the_packaged_glove() -> None:
    model = load_classifier("jwa", head="agreement", seed=0)
    # The first numbers of `the` in the glove.6B.50d.txt that Stanford publishes.
    [the] = model.encode(["The"])[0].input_ids
    published = torch.tensor([0.418, 0.24968, -0.41242, 0.1217])
    torch.testing.assert_close(model.model.embedding.weight[the, :4], published)
    assert model.model.lstm.hidden_size == 25
    near = [_similarity(model, "good", word) for word in ("bad", "great", "wednesday")]
    assert min(near[:2]) > 0.75 > near[2] + 0.2


def test_punctuation_is_a_word_of_its_own_as_it_was_for_glove() -> None:
    model = load_classifier("jwa", seed=0)
    encoded = model.encode(["a Great, great film!"])[0]
    assert encoded.tokens == ["a", "great", ",", "great", "film", "!"]
    assert encoded.word_ids == [0, 1, 1, 2, 3, 3]
    assert not any(encoded.special)
    assert 1 not in encoded.input_ids  # all of them have a vector


def test_word_counts_without_a_file_to_choose_from_are_refused() -> None:
    with pytest.raises(ValueError, match="give both"):
        load_classifier("jwa", word_counts={"film": 2})


def _similarity(model: Classifier, first: str, second: str) -> float:
    a, b = (model.model.embedding.weight[model.encode([w])[0].input_ids[0]]
            for w in (first, second))  # fmt: skip
    return torch.cosine_similarity(a, b, dim=0).item()
