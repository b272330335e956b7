"""What does not fit in memory is tried again with half of the texts; what fits is left alone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from erlib.config import DataSpec, EvalSpec, ModelSpec, OptimiserSpec, RunSpec, term
from erlib.memory import Room
from erlib.models.classifier import Classifier
from erlib.training.evaluating import per_text
from erlib.training.runs import run
from tests import corpus, tiny


def test_half_as_many_texts_are_tried_until_they_fit_and_from_then_on():
    tried, room = [], Room()

    def work(at_once):
        tried.append((at_once, torch.rand(()).item()))
        if at_once is None or at_once > 3:
            raise torch.OutOfMemoryError("out of memory")
        return at_once

    assert room.fitted(10, work) == 3 and room.fitted(10, work) == 3
    assert [n for n, _ in tried] == [None, 5, 3, 3]
    assert len({x for _, x in tried[:3]}) == 1  # drawn anew
    assert [list(some) for some, _ in room.portions("abcdefg", len)] == [
        list("abc"), list("def"), list("g")
    ]  # fmt: skip


def test_a_single_text_that_does_not_fit_is_an_error():
    def work(at_once):
        raise torch.OutOfMemoryError("out of memory")

    with pytest.raises(torch.OutOfMemoryError) as error:
        Room().fitted(2, work)
    assert error.value.__notes__ == ["a single text does not fit: take a shorter max_length"]


def test_a_run_that_meets_the_end_of_memory_has_the_numbers_of_one_that_does_not(
    tmp_path, monkeypatch
):
    corpus.write(tmp_path / "data")
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ERLIB_WORKERS", "1")
    tiny_bert = tiny.directory("bert")
    still = tmp_path / "still"
    model = tiny.classifier("bert", head="er")
    model.model.config.hidden_dropout_prob = model.model.config.attention_probs_dropout_prob = 0.0
    model.save_pretrained(still)
    assert tiny_bert != still
    spec = RunSpec(
        DataSpec("movies", "local", 32),
        ModelSpec(str(still)),
        (term("task"), term("explanation", 0.5, guide="attention")),
        OptimiserSpec(lr=5e-3, epochs=2, batch_size=8),
    )
    whole = run([spec], store=tmp_path / "whole", device="cpu").iloc[0]
    forward = Classifier.forward

    def small(self, inputs, **options):
        if len(inputs["input_ids"]) > 3:
            raise torch.OutOfMemoryError("out of memory")
        return forward(self, inputs, **options)

    monkeypatch.setattr(Classifier, "forward", small)
    parts = run([spec], store=tmp_path / "parts", device="cpu").iloc[0]
    folder = tmp_path / "parts/runs" / parts["run"]
    assert json.loads((folder / "provenance.json").read_text())["texts_at_once"] == 2
    assert whole["run"] == parts["run"] and parts["status"] == "done"
    assert parts["dev_loss"] == pytest.approx(whole["dev_loss"], rel=1e-4)
    asked = EvalSpec(spec, replace(spec.data), "test", "predictions")
    there, here = (
        per_text(asked, store=tmp_path / name, device="cpu") for name in ("whole", "parts")
    )
    assert list(there["id"]) == list(here["id"])
    assert there["p1"].to_numpy() == pytest.approx(here["p1"].to_numpy(), abs=1e-3)
