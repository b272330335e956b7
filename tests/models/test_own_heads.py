"""A checkpoint that has a head of the library's predicts what it predicts there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor
from transformers import (
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    PreTrainedModel,
)

from erlib.attributions import attribute
from erlib.models import load_classifier
from erlib.models.classifier import library_quiet
from tests import tiny

families = pytest.mark.parametrize("family", tiny.FAMILIES)
NAMES = {0: "sad", 1: "so-so", 2: "glad"}
PAIRS = [("which ?", "the plot is bad"), ("a great film", "dull")]


def classifies(family: str, folder: Path, **options: Any) -> PreTrainedModel:
    options = {"id2label": NAMES, **options}
    return tiny.saved_by_library(family, AutoModelForSequenceClassification, folder, **options)


def tokenized(folder: Path, texts: list[Any], side: str = "right") -> dict[str, Tensor]:
    """A padded batch as the library's users make it, without erlib."""
    spoken = AutoTokenizer.from_pretrained(folder, padding_side=side)
    return dict(spoken(texts, padding=True, return_tensors="pt"))


@families
def test_a_librarys_classifier_keeps_its_logits_and_labels(family: str, tmp_path: Path) -> None:
    classifies(family, tmp_path)
    theirs = AutoModelForSequenceClassification.from_pretrained(
        tmp_path, attn_implementation="eager"
    ).eval()
    model = load_classifier(tmp_path)
    assert (model.task, model.head, model.num_labels) == ("classify", "own", 3)
    assert model.model.config.id2label == NAMES
    assert model.max_length == tiny.classifier(family).max_length
    for side in ("right", "left") if family in tiny.DECODERS else ("right",):
        inputs = tokenized(tmp_path, tiny.TEXTS, side)
        with torch.no_grad():
            expected, got = theirs(**inputs).logits, model.forward(inputs).logits
        torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)
        torch.testing.assert_close(model.model(**inputs).logits, expected, atol=1e-6, rtol=0)
    assert expected.std(0).min() > 0.1  # a constant would not do


@families
def test_erlib_puts_the_texts_to_it_as_the_library_does(family: str, tmp_path: Path) -> None:
    classifies(family, tmp_path)
    model = load_classifier(tmp_path)
    # erlib spells a text's first word as it spells the same word elsewhere: after a blank
    blank = " " if family in ("roberta", "gpt2") else ""
    expected = tokenized(tmp_path, [blank + text for text in tiny.TEXTS])
    for name, value in tiny.inputs(model).items():
        assert torch.equal(value, expected.get(name, torch.zeros_like(value)))


@families
def test_in_training_it_has_the_dropout_that_it_was_saved_with(family: str, tmp_path: Path) -> None:
    name = "seq_classif_dropout" if family == "distilbert" else "classifier_dropout"
    theirs = classifies(family, tmp_path, **({} if family in tiny.DECODERS else {name: 0.4}))
    model = load_classifier(tmp_path).train()
    inputs = tokenized(tmp_path, tiny.TEXTS)
    theirs(**inputs)  # BigBird draws random numbers when it turns to full attention
    drawn = []
    for forward in (lambda: theirs.train()(**inputs), lambda: model.forward(inputs)):
        torch.manual_seed(7)
        drawn.append(forward().logits)
    torch.testing.assert_close(drawn[0], drawn[1], atol=1e-6, rtol=0)
    dropped = (drawn[1] - model.eval().forward(inputs).logits).abs().max() > 0.1
    assert dropped == (family != "llama")  # which has no dropout


@families
def test_saved_again_by_erlib_it_stays_the_same_for_both(family: str, tmp_path: Path) -> None:
    theirs = classifies(family, tmp_path / "theirs")
    model = load_classifier(tmp_path / "theirs")
    model.save_pretrained(tmp_path / "ours")
    again = load_classifier(tmp_path / "ours")
    inputs = tokenized(tmp_path / "theirs", tiny.TEXTS)
    assert again.head == "own" and again.model.config.id2label == NAMES
    assert torch.equal(again.forward(inputs).logits, model.forward(inputs).logits)
    with library_quiet():
        back = AutoModelForSequenceClassification.from_pretrained(
            tmp_path / "ours", attn_implementation="eager"
        ).eval()
    torch.testing.assert_close(back(**inputs).logits, theirs(**inputs).logits, atol=1e-6, rtol=0)


@families
def test_a_librarys_span_model_keeps_its_start_and_end(family: str, tmp_path: Path) -> None:
    theirs = tiny.saved_by_library(family, AutoModelForQuestionAnswering, tmp_path)
    model = load_classifier(tmp_path)
    assert (model.task, model.head, model.num_labels) == ("span", "own", 2)
    inputs = tokenized(tmp_path, PAIRS)
    with torch.no_grad():
        got, expected = model.forward(inputs).logits, theirs(**inputs)
    both = torch.stack([expected.start_logits, expected.end_logits], dim=-1)
    real = inputs["attention_mask"] == 1
    if family == "big_bird":  # the library takes 1e6 off the question's logits
        real &= inputs["token_type_ids"] == 1
    assert real.sum() >= 7
    torch.testing.assert_close(got[real], both[real], atol=1e-6, rtol=0)


@families
def test_a_bare_encoder_gets_a_new_er_head(family: str) -> None:
    model = tiny.classifier(family)
    assert (model.task, model.head, model.num_labels) == ("classify", "er", 2)


def test_a_checkpoint_in_shards_is_known_by_its_index(tmp_path: Path) -> None:
    theirs = classifies("electra", tmp_path)
    (tmp_path / "model.safetensors").unlink()
    theirs.save_pretrained(tmp_path, max_shard_size="5KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
    inputs = tokenized(tmp_path, tiny.TEXTS)
    got = load_classifier(tmp_path).forward(inputs).logits
    torch.testing.assert_close(got, theirs(**inputs).logits, atol=1e-6, rtol=0)


def rewrite_config(folder: Path, **changed: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changed}))


@families
def test_without_a_named_class_the_weights_tell(family: str, tmp_path: Path) -> None:
    for kind, task in (
        (AutoModelForSequenceClassification, "classify"),
        (AutoModelForQuestionAnswering, "span"),
    ):
        tiny.saved_by_library(family, kind, tmp_path / task)
        rewrite_config(tmp_path / task, architectures=None)
        model = load_classifier(tmp_path / task)
        assert (model.task, model.head) == (task, "own")


def test_a_class_whose_head_is_not_among_the_weights_is_a_bare_encoder(tmp_path: Path) -> None:
    classifies("roberta", tmp_path)
    kept = safetensors.torch.load_file(tmp_path / "model.safetensors")
    body = {name: weight for name, weight in kept.items() if not name.startswith("classifier")}
    safetensors.torch.save_file(body, tmp_path / "model.safetensors", {"format": "pt"})
    assert load_classifier(tmp_path).head == "er"


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        ("bert", AutoModelForMultipleChoice),  # with the weights of a classifier with one label
        ("llama", AutoModelForTokenClassification),
    ],
)
def test_a_head_for_another_purpose_is_not_taken(family: str, kind: Any, tmp_path: Path) -> None:
    tiny.saved_by_library(family, kind, tmp_path)
    assert load_classifier(tmp_path).head == "er"


@families
def test_asked_for_more_labels_it_gets_a_new_last_map_alone(family: str, tmp_path: Path) -> None:
    classifies(family, tmp_path)
    model, wider = load_classifier(tmp_path), load_classifier(tmp_path, num_labels=5, seed=0)
    inputs = tokenized(tmp_path, tiny.TEXTS)
    assert (wider.head, wider.forward(inputs).logits.shape) == ("own", (3, 5))
    assert torch.equal(wider.forward(inputs).pooled, model.forward(inputs).pooled)


@families
@pytest.mark.filterwarnings("ignore:.*was trained with the library's head")
def test_asked_for_another_task_or_head_it_keeps_its_encoder(family: str, tmp_path: Path) -> None:
    theirs = classifies(family, tmp_path)
    inputs = tokenized(tmp_path, tiny.TEXTS)
    expected = theirs(**inputs, output_hidden_states=True).hidden_states[-1]
    for asked in ({"task": "span"}, {"head": "agreement"}):
        model = load_classifier(tmp_path, seed=0, **asked)
        states = model.forward(inputs).hidden_states[-1]
        real = inputs["attention_mask"] == 1
        torch.testing.assert_close(states[real], expected[real], atol=1e-6, rtol=0)
        assert model.num_labels == (2 if "task" in asked else 1)


def test_big_birds_activation_is_the_configurations(tmp_path: Path) -> None:
    theirs = classifies("big_bird", tmp_path, hidden_act="relu")
    inputs = tokenized(tmp_path, tiny.TEXTS)
    got = load_classifier(tmp_path).forward(inputs)
    torch.testing.assert_close(got.logits, theirs(**inputs).logits, atol=1e-6, rtol=0)
    assert got.pooled.min() == 0 < got.pooled.max()


@pytest.mark.parametrize("family", ["bert", "roberta", "electra", "distilbert", "big_bird"])
def test_the_decomposition_of_a_logit_knows_the_librarys_activation(
    family: str, tmp_path: Path
) -> None:
    classifies(family, tmp_path)
    model = load_classifier(tmp_path)
    [found] = attribute(model, tiny.TEXTS[:1], "decompx_classifier", level="token")
    with torch.no_grad():
        logit = model.forward(tiny.inputs(model, tiny.TEXTS[:1])).logits.max().item()
    assert sum(found.scores) == pytest.approx(logit, abs=1e-4)


def test_big_birds_own_span_head_is_not_decomposed(tmp_path: Path) -> None:
    tiny.saved_by_library("big_bird", AutoModelForQuestionAnswering, tmp_path)
    with pytest.raises(ValueError, match="more than a linear map"):
        attribute(load_classifier(tmp_path), PAIRS[:1], "decompx_classifier")


def test_a_hub_id_whose_weights_are_found_elsewhere_is_known_by_its_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("erlib.models.loading._weight_names", lambda name: None)
    classifies("distilbert", tmp_path)
    assert load_classifier(tmp_path).head == "own"
    assert load_classifier(tiny.directory("distilbert")).head == "er"


def test_a_saved_head_that_is_not_known_is_refused_with_those_that_are(tmp_path: Path) -> None:
    tiny.classifier("bert").save_pretrained(tmp_path)
    settings = json.loads((tmp_path / "erlib.json").read_text())
    (tmp_path / "erlib.json").write_text(json.dumps({**settings, "head": "gelu"}))
    with pytest.raises(ValueError, match="unknown head.*'gelu'.*agreement, er, own, pooled"):
        load_classifier(tmp_path)
