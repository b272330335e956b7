"""Evaluations are measured once per text, shared, and taken up again where they stopped."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from erlib.config import EvalSpec
from erlib.training import making
from erlib.training.evaluating import evaluate, per_text
from erlib.training.evaluations import KINDS
from erlib.training.identity import eval_hash, run_hash
from erlib.training.kinds.predictions import span_overlap


@pytest.fixture
def plausibility(spec):
    return EvalSpec(
        spec,
        spec.data,
        "test",
        "plausibility",
        method="attention",
        target="gold",
        protocol="layers",
    )


def test_predictions_agree_with_the_stored_model_and_with_sklearn(spec, tmp_path):
    wanted = EvalSpec(spec, spec.data, "test", "predictions")
    row = evaluate([wanted], store=tmp_path / "store").iloc[0]  # trains the run first
    table = per_text(wanted, store=tmp_path / "store")
    assert len(table) == 16 and np.allclose(table["p0"] + table["p1"], 1)
    assert row["f1_macro"] == pytest.approx(
        f1_score(table["label"], table["predicted"], average="macro")
    )
    assert row["majority"] == 0.5 and row["run"] == run_hash(spec)


def test_plausibility_is_that_of_the_shared_attributions(plausibility, tmp_path):
    store = tmp_path / "store"
    row = evaluate([plausibility], store=store).iloc[0]
    table = per_text(plausibility, store=store)
    shared = [p for p in (store / "evals").iterdir() if p.name != eval_hash(plausibility)]
    scores = pd.read_parquet(shared[0] / "per_text.parquet")
    assert len(shared) == 1 and scores["id"].tolist() == table["id"].tolist()
    told = store / "evals" / eval_hash(plausibility) / "provenance.json"
    assert json.loads(told.read_text("utf-8"))["made_from"] == shared[0].name
    expected = [
        roc_auc_score(r, s) for r, s in zip(scores["rationale"], scores["scores"], strict=True)
    ]
    assert table["auc"].tolist() == pytest.approx(expected)
    assert row["auc"] == pytest.approx(np.mean(expected))
    precision = [
        average_precision_score(r, s)
        for r, s in zip(scores["rationale"], scores["scores"], strict=True)
    ]
    assert table["average_precision"].tolist() == pytest.approx(precision)
    assert [layers[-1] for layers in table["layer_auc"]] == pytest.approx(expected)
    assert {len(layers) for layers in table["layer_auc"]} == {2}


def test_specials_are_among_the_ranked_tokens(plausibility, tmp_path):
    evaluate([plausibility], store=tmp_path / "store")
    paths = [
        p for p in (tmp_path / "store" / "evals").iterdir() if p.name != eval_hash(plausibility)
    ]
    first = pd.read_parquet(paths[0] / "per_text.parquet").iloc[0]
    assert first["tokens"][0] == "[CLS]" and first["rationale"][0] == 0
    assert len(first["scores"]) == len(first["tokens"]) == len(first["rationale"])


def test_an_interrupted_evaluation_goes_on_with_the_parts_it_has(spec, tmp_path, monkeypatch):
    monkeypatch.setattr(making, "CHUNK", 4)
    wanted = EvalSpec(spec, spec.data, "test", "predictions")
    kind, calls = KINDS["predictions"], []

    def third_call_fails(this):
        calls.append(len(this.rows))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return kind.per_text(this)

    monkeypatch.setitem(
        KINDS, "predictions", type(kind)("predictions", third_call_fails, kind.summarise, 1)
    )
    with pytest.raises(KeyboardInterrupt):
        evaluate([wanted], store=tmp_path / "store")
    resumed = per_text(wanted, store=tmp_path / "store")
    assert calls == [4, 4, 4, 4, 4]  # two done, one failed, two left
    pd.testing.assert_frame_equal(resumed, per_text(wanted, store=tmp_path / "unbroken"))


def test_results_come_in_the_order_asked_for(spec, tmp_path):
    wanted = [
        EvalSpec(spec.with_seed(s), spec.data, split, "predictions")
        for s, split in ((5, "test"), (4, "dev"), (5, "dev"))
    ]
    table = evaluate(wanted, store=tmp_path / "store")
    assert list(zip(table["seed"], table["split"], strict=True)) == [
        (5, "test"),
        (4, "dev"),
        (5, "dev"),
    ]


def test_span_scores_by_hand():
    spans = pd.DataFrame(
        {"gold_start": [2, 2, -1], "gold_end": [4, 4, -1], "start": [2, 3, 0], "end": [4, 6, 0]}
    )
    # exact; tokens 3-4 of 3-6 and 2-4: 2·2/(4+3); an answer that was cut off is missed
    assert span_overlap(spans) == pytest.approx(
        {"exact_match": 1 / 3, "token_f1": (1 + 4 / 7 + 0) / 3}
    )


def test_what_is_made_of_another_table_reads_the_rows_of_its_own_texts(
    plausibility, tmp_path, monkeypatch
):
    whole = per_text(plausibility, store=tmp_path / "whole")
    monkeypatch.setattr(making, "CHUNK", 5)
    in_parts = per_text(plausibility, store=tmp_path / "parts")
    pd.testing.assert_frame_equal(in_parts, whole)
