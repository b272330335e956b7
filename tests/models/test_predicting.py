from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForQuestionAnswering, AutoModelForSequenceClassification

from erlib.models import load_classifier
from tests import tiny

NAMES = {0: "sad", 1: "so-so", 2: "glad"}


def test_labels_and_probabilities_are_the_librarys_in_any_order_and_batch(tmp_path):
    theirs = tiny.saved_by_library(
        "bert", AutoModelForSequenceClassification, tmp_path, id2label=NAMES
    )
    model = load_classifier(tmp_path)
    table = model.predict(tiny.TEXTS, batch_size=2)
    assert list(table.columns) == ["label", "sad", "so-so", "glad"]
    for text, (_, row) in zip(tiny.TEXTS, table.iterrows(), strict=True):
        with torch.no_grad():
            expected = theirs(**tiny.inputs(model, [text])).logits.softmax(-1)[0]
        assert row[list(NAMES.values())].tolist() == pytest.approx(expected.tolist(), abs=1e-6)
        assert row["label"] == NAMES[int(expected.argmax())]


def test_a_single_logit_is_that_of_class_1():
    model = tiny.classifier("bert", head="agreement")
    logit = model.forward(tiny.inputs(model)).logits[:, 0]
    table = model.predict(tiny.TEXTS)
    expected = logit.double().sigmoid().tolist()
    assert table[model.classes[1]].tolist() == pytest.approx(expected, abs=1e-6)


def test_a_span_is_answered_in_the_texts_own_words(tmp_path):
    tiny.saved_by_library("bert", AutoModelForQuestionAnswering, tmp_path)
    model = load_classifier(tmp_path)
    asked = [
        {"question": "which ?", "context": "the Plot is unfunny"},
        {"question": "a", "context": "b"},
    ]
    table = model.predict(asked)
    for question, (_, row) in zip(asked, table.iterrows(), strict=True):
        [encoded] = model.encode([question])
        logits = model.forward(model.batch([encoded]).inputs).logits[0].detach()
        p = logits.double().softmax(0)
        assert row["probability"] == pytest.approx(float(p.max(0).values.prod()), abs=1e-6)
        said = f"{question['question']} {question['context']}"
        assert row["answer"] == "no answer" or row["answer"] in said


def test_prediction_leaves_a_model_in_training_as_it_was():
    model = tiny.classifier("bert").train()
    assert model.predict(tiny.TEXTS).equals(model.predict(tiny.TEXTS))  # no dropout
    assert model.model.training


def test_a_head_without_classes_has_no_labels_to_predict(tmp_path):
    tiny.saved_by_library("bert", AutoModelForSequenceClassification, tmp_path, num_labels=1)
    with pytest.raises(ValueError, match="a number instead of a class"):
        load_classifier(tmp_path).predict(tiny.TEXTS)
