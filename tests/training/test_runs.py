"""A run is its description: the same numbers every time, however often it was interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from transformers import get_linear_schedule_with_warmup

from erlib.config import CheckpointRule, DataSpec, EvalSpec, canonical, run_spec_from_dict, term
from erlib.models import load_classifier
from erlib.training import loop
from erlib.training.evaluating import evaluate, per_epoch, per_text
from erlib.training.identity import run_hash
from erlib.training.making import make_run
from erlib.training.runs import run
from erlib.training.store import open_store
from erlib.training.updates import linear_schedule

REPOSITORY = Path(__file__).parents[2]


def folder(store, spec):
    return Path(store) / "runs" / run_hash(spec)


def with_rule(spec, **rule):
    return replace(spec, optimiser=replace(spec.optimiser, checkpoint=CheckpointRule(**rule)))


def test_a_run_learns_and_leaves_everything_a_reader_needs(spec, tmp_path):
    table = run([spec], store=tmp_path / "store")
    assert table["status"].tolist() == ["done"]
    path = folder(tmp_path / "store", spec)
    assert {
        "spec.json",
        "model.safetensors",
        "history.csv",
        "metrics.json",
        "provenance.json",
        "DONE",
    } <= {f.name for f in path.iterdir()}
    assert not list(path.glob("state-*")) and not (path / "best").exists()
    assert run_spec_from_dict(json.loads((path / "spec.json").read_text())) == spec
    history = pd.read_csv(path / "history.csv")
    assert history["epoch"].tolist() == [1, 2, 3]
    assert history["train_loss"].iloc[-1] < 0.9 * history["train_loss"].iloc[0]
    assert table["lowest_train_task_min"].item() == history["train_task_min"].min()
    parts = history["train_task"] + 0.5 * history["train_explanation"]
    assert history["train_loss"].tolist() == pytest.approx(parts.tolist())
    provenance = json.loads((path / "provenance.json").read_text())
    assert {"seconds", "peak_process_bytes", "device", "spec", "data"} <= set(provenance)
    assert load_classifier(str(path)).head == "er"


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not(spec, tmp_path):
    for store in ("a", "b"):
        run([spec, spec.with_seed(4)], store=tmp_path / store)
    a, b = (load_file(folder(tmp_path / s, spec) / "model.safetensors") for s in ("a", "b"))
    other = load_file(folder(tmp_path / "a", spec.with_seed(4)) / "model.safetensors")
    assert all(a[k].equal(b[k]) for k in a)
    assert not all(a[k].equal(other[k]) for k in a)


KILLED_IN_STEP_9 = """
import json, os, signal, sys
from erlib.config import run_spec_from_dict
from erlib.training import making
from erlib.training.runs import run

train = making.train

def dying(spec, folder, device, on_step, *others):
    steps = []
    def count(loss, n):
        steps.append(n)
        if sum(steps) == 9:
            os.kill(os.getpid(), signal.SIGKILL)
    return train(spec, folder, device, count, *others)

making.train = dying
run([run_spec_from_dict(json.loads(sys.argv[1]))], store=sys.argv[2])
"""


def test_a_run_killed_in_the_middle_ends_with_the_bytes_of_an_unbroken_one(spec, tmp_path):
    """kill -9 in the second of three epochs, then the same call again."""
    died = subprocess.run(
        [sys.executable, "-c", KILLED_IN_STEP_9, canonical(spec), str(tmp_path / "broken")],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
    )
    assert died.returncode == -signal.SIGKILL
    partial = folder(tmp_path / "broken", spec).with_suffix(".partial")
    assert (partial / "state-1" / "sums.json").exists()
    for store in ("broken", "whole"):
        run([spec], store=tmp_path / store)
    broken, whole = folder(tmp_path / "broken", spec), folder(tmp_path / "whole", spec)
    for file in ("metrics.json", "history.csv", "model.safetensors"):
        assert (broken / file).read_bytes() == (whole / file).read_bytes(), file
    assert json.loads((broken / "provenance.json").read_text())["resumed"]
    assert not json.loads((whole / "provenance.json").read_text())["resumed"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda spec: run(spec), r"erlib.run takes a list .*: erlib.run\(\[…\]\) with \[ \]"),
        (lambda spec: run("1a2b3c"), "not the name '1a2b3c'; .*load_classifier.*runs ls"),
        (lambda spec: run(["1a2b3c"]), "takes a list of RunSpec, not the name '1a2b3c'"),
        (lambda spec: run([term("task")]), r"takes a list of RunSpec, not Term\("),
        (lambda spec: run(None), "takes a list of RunSpec, not None"),
        (lambda spec: evaluate([spec]), r"takes a list of EvalSpec, not RunSpec\("),
        (
            lambda spec: run([replace(spec, objective=(term("explanation", gide="attention"),))]),
            "option of objective 'explanation' 'gide'; did you mean 'guide'",
        ),
    ],
)
def test_a_wrong_call_gets_the_sentence_that_mends_it(asked, said, spec, tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path))
    with pytest.raises(ValueError, match=said):
        asked(spec)


def test_a_finished_run_is_not_trained_again(spec, tmp_path, monkeypatch):
    first = run([spec], store=tmp_path / "store")
    monkeypatch.setattr("erlib.training.making.train", lambda *a: pytest.fail("trained again"))
    second = run([spec], store=tmp_path / "store")
    pd.testing.assert_frame_equal(first, second)


def test_a_run_that_never_meets_its_bound_is_lost_and_replaced_at_most_twice(spec, tmp_path):
    hopeless = with_rule(spec, metric="dev_task", bound=("dev_explanation", 0.0))
    table = run([hopeless, hopeless.with_seed(7)], store=tmp_path / "store")
    assert table["status"].tolist() == ["lost"] * 6
    assert table["seed"].tolist() == [3, 8, 10, 7, 9, 11]
    assert table["replaces"].fillna(-1).tolist() == [-1, 3, 3, -1, 7, 7]
    assert not (folder(tmp_path / "store", hopeless) / "model.safetensors").exists()


def test_replacements_of_runs_that_begin_from_others_take_no_seed_twice(spec, tmp_path):
    hopeless = with_rule(spec, metric="dev_task", bound=("dev_explanation", 0.0))
    started = [replace(hopeless, seed=s, start=spec.with_seed(s)) for s in (3, 4)]
    table = run(started, store=tmp_path / "store")
    assert table["seed"].tolist() == [3, 5, 7, 4, 6, 8]


def test_the_best_epoch_is_kept_and_patience_ends_the_run(spec, tmp_path):
    # an accuracy cannot rise by two, so the first epoch stays the best and one more is waited for
    stubborn = with_rule(spec, metric="dev_accuracy", mode="max", min_delta=2.0, patience=1)
    run([stubborn], store=tmp_path / "store")
    metrics = json.loads((folder(tmp_path / "store", stubborn) / "metrics.json").read_text())
    assert (metrics["best_epoch"], metrics["epochs"]) == (1, 2)


def test_a_checkpoint_rule_with_an_unknown_metric_says_what_there_is(spec, tmp_path):
    with pytest.warns(UserWarning, match="'dev_f2'; an epoch has: epoch, train_task"):
        run([with_rule(spec, metric="dev_f2")], store=tmp_path / "store")


def test_evaluations_at_every_epoch_are_kept_with_the_run(spec, tmp_path):
    each = EvalSpec(None, DataSpec("movies", "local", 32), "dev", "predictions")
    watched = replace(spec, each_epoch=(each,))
    run([watched], store=tmp_path / "store")
    table = per_epoch(watched, each, store=tmp_path / "store")
    assert table.groupby("epoch").size().to_dict() == {1: 16, 2: 16, 3: 16}
    history = pd.read_csv(folder(tmp_path / "store", watched) / "history.csv")
    accuracy = (table["label"] == table["predicted"]).groupby(table["epoch"]).mean()
    assert accuracy.tolist() == history["dev_accuracy"].tolist()
    # the kept model is that of the best epoch
    metrics = json.loads((folder(tmp_path / "store", watched) / "metrics.json").read_text())
    final = per_text(replace(each, run=watched), store=tmp_path / "store")
    kept = table[table["epoch"] == metrics["best_epoch"]]
    assert final["p1"].tolist() == pytest.approx(kept["p1"].tolist(), abs=1e-6)


def test_a_trained_run_is_loaded_by_how_its_hash_begins(spec, tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    run([spec])
    loaded = load_classifier(f"run:{run_hash(spec)[:6]}")
    stored = load_file(folder(tmp_path / "store", spec) / "model.safetensors")
    assert all(stored[k].equal(v) for k, v in loaded.model.state_dict().items() if k in stored)
    with pytest.raises(ValueError, match="0 runs .* begin with 'zz'.*runs ls"):
        load_classifier("run:zz")


def test_a_run_is_loaded_by_its_spec_its_hash_and_its_folder(spec, tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    with pytest.raises(ValueError, match=f"{run_hash(spec)} has not been trained.*erlib.run"):
        load_classifier(spec)
    with pytest.raises(ValueError, match="0 runs .* begin with 'deadbeef'"):
        load_classifier("deadbeef")
    [name] = run([spec])["run"]
    path = folder(tmp_path / "store", spec)
    stored = load_file(path / "model.safetensors")
    for one in (spec, name, name[:6], path, str(path)):
        loaded = load_classifier(one)
        assert loaded.name == str(path) and loaded.head == spec.model.head
        assert loaded.model.state_dict().keys() == stored.keys()
        assert all(stored[k].equal(v) for k, v in loaded.model.state_dict().items())


def test_a_lost_run_has_no_model_to_load_and_says_why(spec, tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    lost = with_rule(spec, bound=("dev_loss", 0.0))
    make_run(open_store(), lost, "cpu", lambda *_: None)
    for one in (lost, run_hash(lost)):
        with pytest.raises(ValueError, match="lost: no epoch met its checkpoint rule"):
            load_classifier(one)


def test_the_learning_rate_rises_then_falls_to_zero():
    factors = [linear_schedule(step, 100, 0.1) for step in (0, 5, 10, 55, 100)]
    assert factors == pytest.approx([0, 0.5, 1, 0.5, 0])


@pytest.mark.parametrize(("total", "warmup"), [(4, 0.1), (12, 0.0), (40, 0.25)])
def test_the_learning_rate_is_that_of_transformers_and_no_step_without_warmup_is_lost(
    total: int, warmup: float
):
    theirs = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    schedule = get_linear_schedule_with_warmup(theirs, round(warmup * total), total)
    for step in range(total):
        assert linear_schedule(step, total, warmup) == pytest.approx(schedule.get_last_lr()[0])
        theirs.step()
        schedule.step()
    assert (linear_schedule(0, total, warmup) == 1) == (round(warmup * total) == 0)


def test_every_epoch_has_its_own_order_and_dropout():
    seeds = {loop.epoch_seed(s, e) for s in range(20) for e in range(20)}
    assert len(seeds) == 400


def test_every_epoch_has_dropout_of_its_own(spec, tmp_path):
    """One text and no learning: nothing else can change the loss."""
    still = replace(
        spec,
        data=replace(spec.data, train_rows=1),
        objective=(term("task"),),
        optimiser=replace(spec.optimiser, lr=0.0, batch_size=1),
    )
    run([still], store=tmp_path / "store")
    history = pd.read_csv(tmp_path / "store" / "runs" / run_hash(still) / "history.csv")
    assert history["train_task"].nunique() == 3 and history["dev_task"].nunique() == 1
