from __future__ import annotations

import json
import os
import shutil
import time

import pytest
import torch
from transformers import AutoModelForQuestionAnswering, AutoModelForSequenceClassification

from erlib.explorer.controls import Controls
from erlib.explorer.models import UNTRAINED, _label, open_model, trained_runs
from erlib.explorer.reading import predict
from erlib.explorer.texts import typed
from erlib.training.store import Sealed, Store
from tests import tiny


def test_runs_with_a_model_are_listed_under_what_they_are(here):
    [(label, folder)] = trained_runs(Store(here / "store")).items()
    system, corpus, model, seed, score, name, *_ = label.split(" · ")
    assert (system, corpus, seed) == ("Baseline", "movies", "seed 3")
    assert model.startswith("tiny-bert") and score.startswith("dev F1 0.")
    assert folder.split("/")[-1].startswith(name)


def test_a_lost_run_is_not_offered(tmp_path):
    store = Store(tmp_path)
    store.make("runs", "00ab", lambda folder: "lost")
    assert trained_runs(store) == {}


def test_a_run_that_has_learnt_nothing_is_marked_and_not_chosen(here, tmp_path):
    copy = tmp_path / "store"
    shutil.copytree(here / "store", copy)
    [run] = (copy / "runs").iterdir()
    metrics = json.loads((run / "metrics.json").read_text())

    def label(p):
        metrics["best"]["dev_chance_p"] = p
        (run / "metrics.json").write_text(json.dumps(metrics))
        return _label(Sealed(run, "done"))

    good, bad = label(0.009), label(0.01)
    assert bad == f"{good} · {UNTRAINED}"
    assert Controls({bad: "a", good: "b"}, [], "").runs.value == ("b",)
    assert Controls({bad: "a"}, [], "").runs.value == ("a",)


def test_a_run_names_its_classes_as_its_corpus_does(here):
    [(label, folder)] = trained_runs(Store(here / "store")).items()
    model = open_model(folder)
    assert model.classes == ("negative", "positive")
    assert label in (model.label, f"{model.label} · {model.note}")  # 16 dev texts may prove nothing
    prefix = f"run:{folder.rpartition('/')[2][:8]}"
    assert open_model(prefix).label == model.label


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_classifier_of_the_library_predicts_what_it_predicts_there(family, tmp_path):
    names = {0: "sad", 1: "so-so", 2: "glad"}
    kind = AutoModelForSequenceClassification
    theirs = tiny.saved_by_library(family, kind, tmp_path, id2label=names)
    model = open_model(str(tmp_path))
    assert model.classes == ("sad", "so-so", "glad") and model.note == ""
    encoded = model.classifier.encode([["a", "great", "film"]])
    with torch.no_grad():
        expected = theirs(**model.classifier.batch(encoded).inputs).logits.softmax(-1)[0]
    answers = dict(predict(model, typed("a great film")).answers)
    assert [answers[name] for name in names.values()] == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_model_that_answers_questions_is_opened_as_one(family, tmp_path):
    theirs = tiny.saved_by_library(family, AutoModelForQuestionAnswering, tmp_path)
    model = open_model(str(tmp_path))
    assert model.classifier.task == "span" and model.classes == () and model.note == ""
    encoded = model.classifier.encode([{"question": "which ?", "context": "the plot is bad"}])
    inputs = model.classifier.batch(encoded).inputs
    with torch.no_grad():
        logits = model.classifier.forward(inputs).logits
        if family == "gpt2":
            inputs.pop("token_type_ids", None)
        expected = theirs(**inputs)
    torch.testing.assert_close(logits[..., 0], expected.start_logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(logits[..., 1], expected.end_logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_head_that_was_never_trained_is_said_to_be_so(family):
    assert "never trained" in open_model(str(tiny.directory(family))).note


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"problem_type": "multi_label_classification", "num_labels": 3}, "several labels"),
        ({"problem_type": "regression", "num_labels": 2}, "a number instead of a class"),
        ({"num_labels": 1}, "a number instead of a class"),
    ],
)
def test_a_head_without_classes_is_refused_with_what_can_be_shown(options, found, tmp_path):
    tiny.saved_by_library("bert", AutoModelForSequenceClassification, tmp_path, **options)
    with pytest.raises(ValueError, match=f"{found}.*two or more classes"):
        open_model(str(tmp_path))


def test_a_folder_that_is_saved_again_is_opened_again(tmp_path):
    for seed in (0, 1):
        tiny.classifier(seed=seed).save_pretrained(tmp_path)
        os.utime(tmp_path / "model.safetensors", ns=(seed + 1, time.time_ns() + seed * 10**9))
        opened = open_model(str(tmp_path))
        assert open_model(str(tmp_path)) is opened
        weight = opened.classifier.model.classifier.weight
        assert torch.equal(weight, tiny.classifier(seed=seed).model.classifier.weight)
