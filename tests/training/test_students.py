"""A student learns from a fifth of its teacher's test texts and is examined on the others."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from erlib.attributions import attribute_encoded
from erlib.config import (
    DataSpec,
    EvalSpec,
    ModelSpec,
    OptimiserSpec,
    RunSpec,
    Teaching,
    canonical,
    run_spec_from_dict,
    term,
)
from erlib.data import load_data
from erlib.models import load_classifier
from erlib.provenance import default_device
from erlib.training.evaluating import evaluate, per_text
from erlib.training.identity import eval_hash, run_hash
from erlib.training.kinds.predictions import predict
from erlib.training.making import resolve_rows
from erlib.training.rows import rows_of
from erlib.training.runs import run
from erlib.training.store import open_store
from tests import tiny

BRIEF = OptimiserSpec(lr=5e-3, epochs=1, batch_size=8)


@pytest.fixture
def teacher(spec):
    return replace(spec, objective=(term("task"),), optimiser=BRIEF)


def student_of(teacher, method=None, beta=1.0, **options):
    terms = (term("task"), term("simulation", beta)) if method else (term("task"),)
    model = ModelSpec(teacher.model.name, explainer="ivra-softmax" if method else None)
    data = replace(teacher.data, taught=Teaching(teacher, method, "ivra" if method else None))
    return RunSpec(data, model, terms, BRIEF, seed=teacher.seed + 100, **options)


def resolved(student, split, rows, tmp_path):
    return resolve_rows(open_store(tmp_path / "store"), default_device(), student.data, split, rows)


def test_the_student_s_texts_are_a_fifth_and_four_fifths_of_the_test_split(teacher):
    data = student_of(teacher).data
    learnt, unseen = (set(rows_of(data, split, None)["id"][:]) for split in ("train", "test"))
    whole = set(load_data("movies", split="test", source="local")["id"][:])
    assert learnt | unseen == whole and not learnt & unseen and len(learnt) == len(whole) // 5
    assert rows_of(data, "dev", None)["id"][:] == rows_of(teacher.data, "dev", None)["id"][:]
    assert set(rows_of(data, "train", 2)["id"][:]) <= learnt
    assert set(rows_of(data, "test", 4)["id"][:]) <= unseen


@pytest.mark.parametrize("method", ["attention", "input_x_gradient"])
def test_right_answers_are_the_teacher_s_and_only_lessons_are_explained(teacher, method, tmp_path):
    student = student_of(teacher, method)
    run([teacher], store=tmp_path / "store")
    model = load_classifier(str(tmp_path / "store" / "runs" / run_hash(teacher)))
    for split, rows in (("train", None), ("dev", 5), ("test", 4), ("test", None)):
        texts = resolved(student, split, rows, tmp_path)
        encoded = model.encode(texts, max_length=32)
        plain = model.encode(texts.remove_columns("taught"), max_length=32)
        said = predict(model, plain)["predicted"].tolist()
        assert [text.label for text in encoded] == said
        assert ("explanation" in texts.column_names) == (split == "train")
    lessons = model.encode(resolved(student, "train", None, tmp_path), max_length=32)
    for text, found in zip(
        lessons,
        attribute_encoded(model, lessons, method, variant="ivra", level="token"),
        strict=True,
    ):
        expected = np.abs(found.scores) / np.abs(found.scores).sum()
        np.testing.assert_allclose(text.explanation, expected, atol=1e-5)
    batch = model.batch(lessons)
    np.testing.assert_allclose(batch.explanation.sum(dim=1), 1, atol=1e-5)
    assert (batch.explanation[batch.inputs["attention_mask"] == 0] == 0).all()


@pytest.mark.parametrize(("split", "asked"), [("train", 2), ("dev", 1), ("test", 1)])
def test_a_teacher_is_asked_about_no_text_but_those_of_its_student(teacher, split, asked, tmp_path):
    run([teacher], store=tmp_path / "store")
    texts = resolved(student_of(teacher, "attention"), split, 2, tmp_path)
    evals = open_store(tmp_path / "store").sealed("evals")
    tables = [pd.read_parquet(sealed.path / "per_text.parquet") for sealed in evals]
    assert [table["id"].tolist() for table in tables] == [texts["id"][:]] * asked


def test_simulatability_is_the_share_of_answers_that_two_models_share(teacher, tmp_path):
    store = tmp_path / "store"
    taught, floor = student_of(teacher, "attention"), student_of(teacher)
    specs = [EvalSpec(s, s.data, "test", "simulatability") for s in (taught, floor)]
    table = evaluate(specs, store=store)
    unseen = rows_of(taught.data, "test", None)
    assert table["texts"].tolist() == [len(unseen)] * 2
    models = [load_classifier(str(store / "runs" / run_hash(s))) for s in (teacher, taught, floor)]
    said = [predict(m, m.encode(unseen, max_length=32))["predicted"].to_numpy() for m in models]
    assert table["simulatability"].tolist() == [float((said[0] == s).mean()) for s in said[1:]]
    rows = per_text(specs[0], store=store)
    assert rows["id"].tolist() == unseen["id"][:]
    with pytest.warns(UserWarning, match="examined on its own dev or test data"):
        evaluate([replace(specs[0], data=teacher.data)], store=store)


SPLIT_WORDS = {"train": "best", "dev": "worst", "test": "most"}


def test_a_student_of_spans_learns_its_teacher_s_first_and_last_token(tmp_path, monkeypatch):
    folder = tmp_path / "data" / "reviews"
    folder.mkdir(parents=True)
    for split, size in (("train", 8), ("dev", 4), ("test", 20)):
        with gzip.open(folder / f"{split}.jsonl.gz", "wt", encoding="utf-8") as file:
            for i in range(size):
                context = ("dull . " * (i % 3)) + "a great film ."
                answer = {"text": "great film", "answer_start": context.index("great")}
                question = f"which is {SPLIT_WORDS[split]} ?"  # no text is in two splits
                row = {"id": f"{split}-{i}", "question": question, "context": context}
                file.write(json.dumps({**row, "answers": [answer]}) + "\n")
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path / "data"))
    teacher = RunSpec(
        DataSpec("reviews", "local", 32),
        ModelSpec(str(tiny.directory("bert")), task="span"),
        optimiser=BRIEF,
    )
    student = student_of(teacher, "attention")
    student = replace(student, model=replace(student.model, task="span"))
    wanted = EvalSpec(student, student.data, "test", "simulatability")
    table = evaluate([wanted], store=tmp_path / "store")
    unseen = rows_of(student.data, "test", None)
    ends = []
    for s in (teacher, student):
        model = load_classifier(str(tmp_path / "store" / "runs" / run_hash(s)))
        ends.append(predict(model, model.encode(unseen, max_length=32))[["start", "end"]])
    same = (ends[0].to_numpy() == ends[1].to_numpy()).all(axis=1).mean()
    assert table.iloc[0]["simulatability"] == same and table.iloc[0]["texts"] == 16


def test_a_student_is_named_by_its_teacher_and_an_old_run_keeps_its_name(teacher):
    student = student_of(teacher, "attention")
    others = [
        student_of(teacher.with_seed(9), "attention"),
        student_of(teacher, "input_x_gradient"),
        student_of(teacher),
    ]
    assert len({run_hash(s) for s in (student, *others)}) == 4
    assert eval_hash(EvalSpec(teacher, student.data, "test", "predictions")) != eval_hash(
        EvalSpec(teacher, teacher.data, "test", "predictions")
    )
    for spec in (student, *others, replace(teacher, model=replace(teacher.model, frozen=2))):
        assert run_spec_from_dict(json.loads(canonical(spec))) == spec
    assert not {"taught", "explainer", "frozen"} & set(json.loads(canonical(teacher))["model"])
    assert "taught" not in canonical(teacher)  # new options are left out of the old form


def test_an_unknown_explainer_is_refused_before_anything_is_trained(teacher):
    with pytest.raises(ValueError, match="unknown explainer 'ivra'"):
        run_hash(replace(teacher, model=replace(teacher.model, explainer="ivra")))
