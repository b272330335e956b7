from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from datasets import ClassLabel, Dataset, Features, Sequence, Value

from erlib.attributions import METHODS, Attribution, attribute
from erlib.attributions.attribute import _finished, text_seed
from erlib.attributions.memory import bytes_per_text, parse_bytes
from erlib.attributions.variants import Options
from erlib.data.schema import to_dataset
from tests import tiny
from tests.attributions import toy

OURS = (
    "random", "attention", "attention_all", "rollout", "scaled_attention", "saliency",
    "input_x_gradient", "integrated_gradients", "deeplift", "deepshap", "gradshap", "lime",
)  # fmt: skip
TEXTS = ["dull", "a great film , truly moving", "the plot is unfunny"]
PAIR = ("the plot is bad", "unfunny film")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    @cache
    def model(family):
        if family == "jwa":
            return toy.jwa(tmp_path_factory.mktemp("jwa"))
        return tiny.classifier(family)

    return model


@pytest.mark.parametrize(
    ("family", "method"),
    [(f, m) for f in (*tiny.FAMILIES, "jwa") for m in OURS if (f, m) != ("jwa", "rollout")],
)
def test_a_padded_batch_gives_the_scores_of_each_text_alone(family, method, models):
    classifier = models(family)
    together = attribute(classifier, TEXTS, method, level="token", batch_size=3)
    for text, found in zip(TEXTS, together, strict=True):
        (alone,) = attribute(classifier, [text], method, level="token")
        most = max(1, np.abs(alone.scores).max())  # a random Llama's gradients reach 3
        np.testing.assert_allclose(found.scores, alone.scores, rtol=0, atol=1e-5 * most)
        assert found.tokens == alone.tokens and len(found.scores) == len(found.tokens)
        assert np.isfinite(found.scores).all() and found.method == method


@pytest.mark.parametrize("method", OURS)
def test_every_method_explains_pairs_and_spans(method):
    pair = attribute(tiny.classifier("electra"), [PAIR, TEXTS[1]], method)
    assert pair[0].tokens == ["the", "plot", "is", "bad", "unfunny", "film"]
    assert pair[0].segment == [0, 0, 0, 0, 1, 1] and pair[0].word_ids == [0, 1, 2, 3, 0, 1]
    questions = [
        {"question": "which is best ?", "context": "a great film . dull ."},
        {"question": "which ?", "context": "dull ."},
    ]
    classifier = tiny.classifier("bert", task="span")
    together = attribute(classifier, questions, method, level="token", batch_size=2)
    for question, found in zip(questions, together, strict=True):
        (alone,) = attribute(classifier, [question], method, level="token")
        np.testing.assert_allclose(found.scores, alone.scores, atol=1e-5)
        assert found.target == alone.target and len(found.target) == 2
        assert max(found.target) < len(found.tokens)  # never a pad


def test_a_span_is_explained_by_the_sum_of_its_start_and_end_logits():
    classifier = tiny.classifier("distilbert", task="span")
    rows = Dataset.from_dict({
        "id": ["q"], "question": ["which is dull ?"], "context": ["a great film . the plot is bad"],
        "answers": [[{"text": "the plot", "answer_start": 15}]],
    })  # fmt: skip
    gold, predicted = (
        attribute(
            classifier, rows, "input_x_gradient", variant="word_embedding", level="token", target=t
        )[0]
        for t in ("gold", "predicted")
    )
    (encoded,) = classifier.encode(rows)
    for found, target in ((gold, encoded.answer), (predicted, predicted.target)):
        assert found.target == target
        ids = torch.tensor([encoded.input_ids])
        x = classifier.model.get_input_embeddings()(ids).detach().requires_grad_()
        output = classifier.model(inputs_embeds=x)
        z = output.start_logits[0, target[0]] + output.end_logits[0, target[1]]
        (gradient,) = torch.autograd.grad(z, x)
        np.testing.assert_allclose(found.scores, (x * gradient).sum(-1)[0].detach(), atol=1e-5)
    best = classifier.model(input_ids=ids)
    assert predicted.target == (int(best.start_logits.argmax()), int(best.end_logits.argmax()))


def test_a_word_has_the_sum_of_its_pieces_and_specials_are_gone():
    classifier = tiny.classifier("bert")
    (word,) = attribute(classifier, [PAIR], "rollout", per_layer=True)
    (token,) = attribute(classifier, [PAIR], "rollout", per_layer=True, level="token")
    assert sum(token.special) == 3 and len(token.tokens) > len(word.tokens) + 3
    keys = list(zip(token.segment, token.word_ids, strict=True))
    for i, key in enumerate(zip(word.segment, word.word_ids, strict=True)):
        pieces = [k == key for k in keys]
        assert word.scores[i] == pytest.approx(token.scores[pieces].sum(), abs=1e-6)
        np.testing.assert_allclose(word.layers[:, i], token.layers[:, pieces].sum(1), atol=1e-6)
    assert not any(word.special) and word.layers.shape == (2, len(word.tokens))


def test_words_that_were_cut_off_have_no_score():
    classifier = tiny.classifier("bert")
    classifier.max_length = 6
    (found,) = attribute(classifier, ["the plot is bad and dull and bad"], "attention")
    assert found.tokens[:2] == ["the", "plot"] and len(found.tokens) < 6


def test_the_class_explained_is_the_predicted_or_the_gold_one():
    classifier = tiny.classifier("bert", num_labels=3)
    with torch.no_grad():
        logits = classifier.forward(tiny.inputs(classifier, TEXTS)).logits
    predicted = logits.argmax(-1).tolist()
    labels = [(y + 1) % 3 for y in predicted]
    gold = attribute(classifier, TEXTS, "saliency", labels=labels, target="gold")
    own = attribute(classifier, TEXTS, "saliency", labels=labels)
    assert [a.target for a in own] == predicted and [a.target for a in gold] == labels
    assert all(abs(a.scores - b.scores).max() > 1e-3 for a, b in zip(gold, own, strict=True))


def test_the_gold_class_needs_labels_that_the_model_has():
    classifier = tiny.classifier("bert")
    with pytest.raises(ValueError, match="needs labels"):
        attribute(classifier, TEXTS, "saliency", target="gold")
    with pytest.raises(ValueError, match="needs labels"):
        attribute(classifier, TEXTS, "input_x_gradient", variant="er_lens")
    with pytest.raises(ValueError, match="label 2 for a model of 2 classes"):
        attribute(classifier, TEXTS, "saliency", target="gold", labels=[0, 1, 2])


def test_a_data_set_brings_its_labels():
    features = Features(
        {
            "id": Value("string"),
            "words": Sequence(Value("string")),
            "label": ClassLabel(names=["no", "yes"]),
        }
    )
    rows = {"id": ["a", "b"], "words": [["dull", "plot"], ["great"]], "label": [1, 0]}
    data = Dataset.from_dict(rows, features=features)
    found = attribute(tiny.classifier("bert"), data, "input_x_gradient", variant="er_lens")
    assert [a.target for a in found] == [1, 0]
    assert [a.tokens for a in found] == rows["words"]


def test_an_answer_that_was_cut_off_cannot_be_explained():
    classifier = tiny.classifier("bert", task="span")
    classifier.max_length = 12
    rows = Dataset.from_dict({
        "id": ["q7"], "question": ["which ?"], "context": ["the plot is bad and dull and great"],
        "answers": [[{"text": "great", "answer_start": 29}]],
    })  # fmt: skip
    with pytest.raises(ValueError, match=r"cut|needs labels"):
        attribute(classifier, rows, "saliency", target="gold")


def test_results_come_in_the_order_of_the_inputs_whatever_the_batches():
    classifier = tiny.classifier("bert")
    texts = ["the plot is bad", "dull", "a great film , truly moving", "dull plot"]
    expected = [text.split() for text in texts]
    for options in ({"batch_size": 1}, {"batch_size": 3}, {"max_memory": "100kB"}, {}):
        found = attribute(classifier, texts, "lime", **options)
        assert [a.tokens for a in found] == expected
        reference = attribute(classifier, texts, "lime")
        for a, b in zip(found, reference, strict=True):
            np.testing.assert_allclose(a.scores, b.scores, atol=1e-6)


def test_a_text_has_its_own_seed():
    classifier = tiny.classifier("bert")
    one, other = classifier.encode(["dull plot", "dull film"])
    again = classifier.encode(["a film", "dull plot"])[1]
    assert text_seed(0, one) == text_seed(0, again)
    assert len({text_seed(0, one), text_seed(1, one), text_seed(0, other)}) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "salience"}, "unknown method 'salience'; did you mean 'saliency'?"),
        ({"method": "deeplift", "variant": "hook"}, "did you mean 'hooked'?.*captum, hooked"),
        ({"method": "rollout", "level": "words"}, "unknown level 'words'"),
        (
            {"method": "rollout", "target": "golden"},
            "unknown target 'golden'; did you mean 'gold'?",
        ),
        ({"method": "lime", "per_layer": True}, "'lime' has no per-layer scores.*rollout"),
        ({"method": "lime", "max_memory": "much"}, "write it as '2GB'"),
    ],
)
def test_what_is_not_known_is_refused_with_what_is(arguments, message):
    with pytest.raises(ValueError, match=message):
        attribute(tiny.classifier("bert"), TEXTS, **arguments)


def test_sizes_are_read_as_they_are_written():
    assert parse_bytes("2GB") == 2 * parse_bytes("1000 MB") == parse_bytes("2e9") == 2_000_000_000


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_the_memory_of_a_pass_is_estimated_from_above_and_not_by_far(family):
    classifier = tiny.classifier(family)
    for parameter in classifier.model.parameters():
        parameter.requires_grad_(False)
    own = {p.untyped_storage().data_ptr() for p in classifier.model.parameters()}
    inputs = tiny.inputs(classifier, ["dull film " * 20])
    x = classifier.forward(inputs).embeddings.requires_grad_()
    saved: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        kept = classifier.forward(inputs, embeddings=x)
    measured = sum(size for place, size in saved.items() if place not in own)
    estimate = bytes_per_text(classifier, x.shape[1], graph=True)
    assert kept.logits.requires_grad and measured < estimate < 4 * measured


def test_an_attribution_shows_itself_without_trusting_its_text():
    found = Attribution(
        tokens=["<b>", "&", "dull"], word_ids=[0, 1, 2], segment=[0] * 3, special=[False] * 3,
        scores=np.array([-2.0, -np.inf, 1.0]), layers=None, target=1, method="lime", variant="ivra",
        completeness_gap=None,
    )  # fmt: skip
    shown = found._repr_html_()
    assert "<b>" not in shown and "&lt;b&gt;" in shown and "&amp;" in shown
    assert "rgba(213,94,0,1.00)" in shown and "rgba(0,114,178,0.50)" in shown
    assert "nan" not in shown and "lime (ivra)" in shown


def test_all_of_these_methods_are_registered():
    assert set(OURS) <= set(METHODS)


def test_a_class_is_explained_by_its_index_and_by_its_name():
    model = tiny.classifier("bert", num_labels=3)
    texts = tiny.TEXTS
    model.model.config.label2id = {"bad": 0, "good": 1, "fine": 2}
    gold = attribute(model, texts, "saliency", target="gold", labels=[1] * len(texts))
    for target in (1, np.int64(1), "good"):
        found = attribute(model, texts, "saliency", target=target)
        assert [one.target for one in found] == [1, 1, 1]
        for one, other in zip(found, gold, strict=True):
            np.testing.assert_array_equal(one.scores, other.scores)
    rows = [{"id": "a", "words": ["dull"], "label": 0}]
    data = to_dataset(rows, "classify", ["good", "bad", "so so"])  # its own names come first
    assert attribute(model, data, "attention", target="bad")[0].target == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"target": 3}, "label 3 for a model of 2 classes"),
        ({"target": -1}, "label -1 for a model of 2 classes"),
        ({"target": "goood"}, "unknown target 'goood'; .*LABEL_0, LABEL_1, gold, predicted"),
        ({"target": [1]}, "unknown target"),
        ({"target": True}, "unknown target 'True'"),
        ({"batch_size": 0}, "batch_size must be a whole number from 1 on, not 0"),
        ({"batch_size": "all"}, "batch_size must be a whole number"),
        ({"seed": None}, "seed must be a whole number"),
        ({"labels": ["good"] * 3}, "a label must be a whole number from 0 on, not 'good'"),
        ({"inputs": 5}, "inputs are a list of texts or a Dataset, not 5"),
        ({"inputs": [5]}, "input '0': a text or a list of words, not 5"),
    ],
)
def test_impossible_arguments_are_refused(asked, said):
    asked = {"inputs": tiny.TEXTS, "method": "attention", **asked}
    with pytest.raises(ValueError, match=said):
        attribute(tiny.classifier("bert"), **asked)


def test_a_span_model_has_no_class_to_explain():
    question = {"question": "which ?", "context": "a great film"}
    model = tiny.classifier("bert", task="span")
    with pytest.raises(ValueError, match="spans have no classes, so no target 1; known"):
        attribute(model, [question], "attention", target=1)


def test_a_text_that_is_cut_says_so_and_by_how_much():
    model, words = tiny.classifier("bert"), ["film"] * 100
    with pytest.warns(UserWarning, match=r"1 of 2 texts were cut to the 64 tokens") as said:
        short, long = attribute(model, [["a", "film"], words], "attention")
    assert "of '1', the last 38 of 100 words have no score" in str(said[0].message)
    assert (short.cut, long.cut, len(long.scores)) == (0, 38, 62)  # 64 − [CLS] − [SEP]
    assert "38 more words were cut" in long._repr_html_() and "cut" not in short._repr_html_()


def test_specials_that_come_last_are_no_part_of_what_scores_are_divided_by():
    scores = torch.tensor([[9.0, 3.0, -4.0]], dtype=torch.float64)
    special = torch.tensor([True, False, False])
    for normalise, divisor in (("l2", 5.0), ("sum", -1.0)):
        options = Options(specials="last", normalise=normalise)
        expected = [[-torch.inf, 3 / divisor, -4 / divisor]]
        assert _finished(scores, special, options).tolist() == expected
