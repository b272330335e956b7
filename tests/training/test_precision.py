"""A run's precision is a part of its name, and of its training alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from erlib.config import (
    DataSpec,
    EvalSpec,
    OptimiserSpec,
    RunSpec,
    canonical,
    digest,
    run_spec_from_dict,
    term,
    update,
)
from erlib.memory import Room
from erlib.models import load_classifier
from erlib.models.precision import warn_if_slow
from erlib.training import loop, making
from erlib.training.identity import run_hash
from erlib.training.listing import run_label
from erlib.training.rows import rows_of
from erlib.training.runs import run
from erlib.training.store import open_store


@pytest.fixture(autouse=True)
def a_cpu_with_bf16(monkeypatch):
    """So that no test depends on the machine's instructions."""
    warn_if_slow.cache_clear()
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    yield
    warn_if_slow.cache_clear()


def at(precision: str, spec: RunSpec) -> RunSpec:
    return replace(spec, optimiser=replace(spec.optimiser, precision=precision))


def folder(store: Path, spec: RunSpec) -> Path:
    return store / "runs" / run_hash(spec)


def test_fp32_is_not_in_a_name_and_every_other_precision_makes_one_of_its_own(spec):
    assert "precision" not in canonical(spec)
    assert run_hash(at("fp32", spec)) == run_hash(spec)
    names = {run_hash(at(precision, spec)) for precision in ("fp32", "tf32", "bf16")}
    assert len(names) == 3
    assert run_spec_from_dict(json.loads(canonical(at("bf16", spec)))) == at("bf16", spec)


def test_an_optimiser_that_was_described_before_there_were_precisions_keeps_its_digest():
    old = {
        "batch_size": 32, "betas": [0.9, 0.98], "clip": None, "epochs": 3, "head_lr": None,
        "lr": 5e-5, "schedule": "linear", "warmup": 0.1, "weight_decay": 0.0,
        "checkpoint": {
            "bound": None, "metric": "dev_loss", "min_delta": 1e-5, "mode": "min", "patience": 5,
            "patience_unmet": None,
        },
    }  # fmt: skip
    assert digest(OptimiserSpec()) == digest(old)


def test_an_unknown_precision_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="'bf61'; did you mean 'bf16'. known: bf16, fp32, tf32"):
        OptimiserSpec(precision="bf61")


def test_training_is_bf16_and_dev_scores_and_evaluations_are_not(spec, tmp_path, monkeypatch):
    seen: set[tuple[bool, torch.dtype]] = set()
    states = []

    def watched(*args, **options):
        classifier = load_classifier(*args, **options)
        dense = classifier.model.base_model.encoder.layer[0].output.dense
        dense.register_forward_hook(lambda m, _, out: seen.add((m.training, out.dtype)))
        return classifier

    def kept(run_folder, classifier, strategy, progress):
        states.extend([*classifier.model.parameters(), *strategy.tensors().values()])

    monkeypatch.setattr(loop, "load_classifier", watched)
    monkeypatch.setattr(loop, "save_state", kept)
    each = EvalSpec(None, DataSpec("movies", "local", 32), "dev", "predictions")
    bf16 = at("bf16", replace(spec, each_epoch=(each,)))
    run([bf16], store=tmp_path)
    assert seen == {(True, torch.bfloat16), (False, torch.float32)}
    assert {tensor.dtype for tensor in states} == {torch.float32}
    weights = load_file(folder(tmp_path, bf16) / "model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.float32}


def test_dev_scores_are_those_of_the_kept_weights_in_float32(spec, tmp_path):
    bf16 = at("bf16", spec)
    (row,) = run([bf16], store=tmp_path).to_dict("records")
    kept = load_classifier(str(folder(tmp_path, bf16))).eval()
    held_out = kept.encode(rows_of(spec.data, "dev", None), max_length=32)
    again = loop.dev_scores(kept, held_out, loop.Weighted(spec.objective), 8, False, Room())
    assert {name: row[name] for name in again} == again


def test_a_bf16_run_is_near_its_fp32_twin_and_not_the_same(spec, tmp_path):
    table = run([spec, at("bf16", spec)], store=tmp_path)
    first, second = table["train_loss"]
    assert first == pytest.approx(second, rel=0.05) and first != second
    paths = [folder(tmp_path, s) for s in (spec, at("bf16", spec))]
    said = [json.loads((p / "provenance.json").read_text())["precision"] for p in paths]
    assert said == ["fp32", "bf16"]
    labels = [run_label(open_store(tmp_path).get("runs", p.name)) for p in paths]
    assert [" · bf16 · " in label for label in labels] == [False, True]


def test_an_interrupted_bf16_run_ends_with_the_bytes_of_an_unbroken_one(
    spec, tmp_path, monkeypatch
):
    bf16 = at("bf16", spec)
    run([bf16], store=tmp_path / "whole")
    train = making.train

    def stopped(spec, folder, device, on_step, *others):
        done = []

        def count(loss, n):
            done.append(n)
            if sum(done) == 9:  # in the second of three epochs
                raise KeyboardInterrupt

        return train(spec, folder, device, count, *others)

    with monkeypatch.context() as patched:
        patched.setattr(making, "train", stopped)
        with pytest.raises(KeyboardInterrupt):
            run([bf16], store=tmp_path / "broken")
    run([bf16], store=tmp_path / "broken")
    broken, whole = (folder(tmp_path / store, bf16) for store in ("broken", "whole"))
    assert json.loads((broken / "provenance.json").read_text())["resumed"]
    for file in ("metrics.json", "history.csv", "model.safetensors"):
        assert (broken / file).read_bytes() == (whole / file).read_bytes(), file


@pytest.mark.parametrize(
    "strategy",
    [
        update("constrained", term="explanation", bound=0.03, lr=0.1),
        update("pilot", student_lr=1e-2),
    ],
    ids=lambda strategy: strategy.name,
)
def test_every_strategy_trains_in_bf16_with_losses_near_those_of_fp32(spec, tmp_path, strategy):
    spec = replace(
        spec,
        data=replace(spec.data, train_rows=16),
        model=replace(spec.model, explainer="ivra-softmax"),
        optimiser=replace(spec.optimiser, epochs=1),
        update=strategy,
    )
    table = run([spec, at("bf16", spec)], store=tmp_path)
    assert table["status"].tolist() == ["done", "done"]
    for name in table.filter(like="train_"):
        first, second = table[name]
        assert first == pytest.approx(second, rel=0.1), name
    assert table["train_loss"].nunique() == 2


def test_tf32_is_refused_on_a_cpu_before_anything_is_trained(spec, tmp_path, monkeypatch):
    monkeypatch.setattr(making, "train", lambda *a: pytest.fail("trained"))
    with pytest.raises(ValueError, match="tf32 is how NVIDIA's GPUs multiply"):
        run([spec, at("tf32", spec)], store=tmp_path, device="cpu")


def test_a_run_in_bf16_warns_where_it_is_slower(spec, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    with pytest.warns(UserWarning, match="slower than 'fp32'") as seen:
        run([at("bf16", spec), at("bf16", spec).with_seed(4)], store=tmp_path)
    assert len(seen) == 1 and seen[0].filename == __file__


def test_jwa_is_not_trained_in_bf16(spec, tmp_path):
    glove = tmp_path / "glove.txt"
    glove.write_text("".join(f"{word} 0.1 0.2 0.3 0.4\n" for word in ("great", "dull", "film")))
    jwa = load_classifier("jwa", glove=glove, head="agreement", seed=0)
    jwa.save_pretrained(tmp_path / "jwa")
    model = replace(spec.model, name=str(tmp_path / "jwa"), head="agreement")
    refused = replace(at("bf16", spec), model=model, objective=(term("task"),))
    with pytest.warns(UserWarning, match="jwa is trained with precision='fp32' or 'tf32'"):
        assert run([refused], store=tmp_path)["status"].tolist() == ["failed"]
