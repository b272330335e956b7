"""A run may be trained on the rationales of another: named by it, resolved through the store."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from erlib.attributions import attribute
from erlib.config import DataSpec, EvalSpec, Extraction, canonical, run_spec_from_dict, term
from erlib.data.schema import to_dataset
from erlib.metrics.fresh import extracted
from erlib.models import load_classifier
from erlib.training import identity, making
from erlib.training.evaluating import evaluate, per_text
from erlib.training.identity import run_hash
from erlib.training.making import resolve_rows
from erlib.training.rows import rows_of
from erlib.training.runs import run
from erlib.training.store import open_store


def fresh(spec, **options):
    """A classifier of the rationales that `spec` finds."""
    extract = Extraction(spec, percent=40, variant="saloss", **options)
    return replace(spec, data=replace(spec.data, extract=extract), objective=(term("task"),))


def rationales(spec, store, split="train", rows=None):
    return resolve_rows(open_store(store), "cpu", spec.data, split, rows)


def test_a_classifier_sees_the_best_words_of_the_support_model_and_nothing_else(spec, tmp_path):
    store = tmp_path / "store"
    table = run([fresh(spec)], store=store)  # trains the support model first
    assert table["status"].tolist() == ["done"]
    assert {p.name for p in (store / "runs").iterdir()} == {run_hash(spec), run_hash(fresh(spec))}
    support = load_classifier(str(store / "runs" / run_hash(spec)))
    texts = rows_of(spec.data, "train", None)
    found = rationales(fresh(spec), store)
    scores = attribute(support, texts, "attention", variant="saloss")
    for text, kept, given in zip(texts, found, scores, strict=True):
        words = text["words"]
        k = -(-40 * len(words) // 100)
        best = sorted(sorted(range(len(words)), key=lambda i: (-given.scores[i], i))[:k])
        assert kept["words"] == [words[i] for i in best]
        assert (kept["id"], kept["label"]) == (text["id"], text["label"])


def test_shapes_and_orders_share_one_scoring_of_the_words(spec, tmp_path, monkeypatch):
    store = tmp_path / "store"
    shapes = [fresh(spec), fresh(spec, shape="contiguous"), fresh(spec, order="score")]
    found = [rationales(s, store, "test") for s in shapes]
    assert len(list((store / "evals").iterdir())) == 1
    assert {len(a["words"]) for a in found[0]} == {len(b["words"]) for b in found[1]}
    texts = rows_of(spec.data, "test", None)
    for text, window in zip(texts, found[1], strict=True):
        joined = " ".join(text["words"])
        assert " ".join(window["words"]) in joined
    assert [sorted(a["words"]) for a in found[0]] == [sorted(b["words"]) for b in found[2]]
    assert any(a["words"] != b["words"] for a, b in zip(found[0], found[2], strict=True))


def test_the_name_covers_the_support_run_and_every_choice_of_the_extraction(spec):
    identity.run_hash.cache_clear()
    variants = [
        spec,
        fresh(spec),
        fresh(spec.with_seed(9)),
        fresh(spec, shape="contiguous"),
        fresh(spec, order="score"),
        fresh(spec, method="scaled_attention"),
    ]
    assert len({run_hash(s) for s in variants}) == len(variants)
    assert run_spec_from_dict(json.loads(canonical(fresh(spec)))) == fresh(spec)
    assert identity.run_identity(fresh(spec))["extract"]["run"] == run_hash(spec)


def test_a_new_version_of_the_attribution_is_another_run(spec, monkeypatch):
    before = run_hash(fresh(spec))
    changed = replace(identity.method("attention"), version=99)
    monkeypatch.setattr(identity, "method", lambda name: changed)
    identity.run_hash.cache_clear()
    assert run_hash(fresh(spec)) != before
    identity.run_hash.cache_clear()


def test_a_classifier_is_evaluated_on_rationales_of_the_split_asked_for(spec, tmp_path):
    store, tested = tmp_path / "store", fresh(spec)
    data = replace(tested.data, train_rows=None, dev_rows=None)
    evaluate([EvalSpec(tested, data, "test", "predictions", 8)], store=store)
    table = per_text(EvalSpec(tested, data, "test", "predictions", 8), store=store)
    classifier = load_classifier(str(store / "runs" / run_hash(tested))).eval()
    words = rationales(tested, store, "test", 8)["words"][:]
    batch = classifier.batch(classifier.encode(words))
    expected = classifier.forward(batch.inputs).logits.softmax(-1)[:, 1].tolist()
    assert table["p1"].tolist() == pytest.approx(expected, abs=1e-5)


def test_of_a_pair_only_the_document_is_cut_down():
    rows = [
        {"id": "x", "words_a": ["a", "b", "c", "d"], "words_b": ["why", "not"], "label": 1},
        {"id": "y", "words_a": ["e", "f"], "words_b": ["so"], "label": 0},
    ]
    pairs = to_dataset(rows, "pair", ["no", "yes"])
    # of the first text the model saw three words only
    found = extracted(pairs, [np.array([0.1, 0.3, 0.2]), np.array([0.0, 1.0])], percent=50)
    assert found["words_a"][:] == [["b", "c"], ["f"]]
    assert found["words_b"][:] == [["why", "not"], ["so"]]
    assert found["label"][:] == [1, 0] and found.features["label"].names == ["no", "yes"]


def test_words_are_scored_in_the_document_of_a_pair_alone(spec, tmp_path, monkeypatch):
    rows = [
        {"id": "p", "words_a": ["great", "unfunny", "film"], "words_b": ["the", "plot"], "label": 1}
    ]
    pairs = to_dataset(rows, "pair", ["no", "yes"])
    run([spec], store=tmp_path / "store")
    monkeypatch.setattr(making, "rows_of", lambda data, split, rows: pairs)
    wanted = EvalSpec(spec, DataSpec("movies", "local", 32), "test", "word_scores",
                      method="attention", level="word")  # fmt: skip
    (scores,) = per_text(wanted, store=tmp_path / "store")["scores"]
    support = load_classifier(str(tmp_path / "store" / "runs" / run_hash(spec)))
    (given,) = attribute(support, [(rows[0]["words_a"], rows[0]["words_b"])], "attention")
    assert scores.tolist() == pytest.approx(given.scores[:3].tolist(), abs=1e-6)
