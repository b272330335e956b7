"""A run that fails stops nothing but what rests on it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import psutil
import pytest

from erlib.config import (
    CheckpointRule,
    EvalSpec,
    Extraction,
    OptimiserSpec,
    Teaching,
    term,
    update,
)
from erlib.training import making
from erlib.training.evaluating import evaluate, per_text
from erlib.training.evaluations import KINDS
from erlib.training.identity import eval_hash, run_hash
from erlib.training.runs import run
from erlib.training.store import open_store

REPOSITORY = Path(__file__).parents[2]
RESULT = ("model.safetensors", "metrics.json", "history.csv")
ONE_FAILED = pytest.mark.filterwarnings("ignore:.*failed:UserWarning")


def wild(spec, **changes):
    """The run at a learning rate at which no weight stays finite."""
    return replace(spec, optimiser=replace(spec.optimiser, lr=1e30, **changes))


def failure(store, spec):
    kind, name = ("evals", eval_hash) if isinstance(spec, EvalSpec) else ("runs", run_hash)
    return json.loads((Path(store) / kind / name(spec) / "failure.json").read_text("utf-8"))


def same_results(a, b, specs):
    for name in map(run_hash, specs):
        for file in RESULT:
            one, two = (Path(store) / "runs" / name / file for store in (a, b))
            assert one.read_bytes() == two.read_bytes(), (name, file)


def dying_once(marker, victim, at):
    """`train`, whose process is killed at a step of one run, the first time that it gets there."""
    train = making.train

    def dying(spec, folder, device, on_step, *others):
        steps = []

        def count(terms, n):
            on_step(terms, n)
            steps.append(n)
            if spec == victim and sum(steps) >= at and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)

        return train(spec, folder, device, count, *others)

    return dying


@ONE_FAILED
def test_forty_runs_with_two_that_diverge_and_one_killed_worker_give_38_undisturbed_results(
    spec, tmp_path, monkeypatch
):
    monkeypatch.setenv("ERLIB_WORKERS", "2")
    small = replace(
        spec,
        data=replace(spec.data, train_rows=8, dev_rows=4),
        objective=(term("task"),),
        optimiser=replace(spec.optimiser, epochs=2, batch_size=4),
    )
    good = [small.with_seed(seed) for seed in range(38)]
    run(good, store=tmp_path / "undisturbed")
    marker, bad = tmp_path / "killed", [wild(small), wild(small.with_seed(38))]
    monkeypatch.setattr(making, "train", dying_once(marker, good[20], at=3))
    table = run([*good[:7], bad[0], *good[7:30], bad[1], *good[30:]], store=tmp_path / "disturbed")
    assert marker.exists()
    assert (
        table["status"].tolist()
        == ["done"] * 7 + ["failed"] + ["done"] * 23 + ["failed"] + ["done"] * 8
    )
    same_results(tmp_path / "disturbed", tmp_path / "undisturbed", good)
    resumed = tmp_path / "disturbed" / "runs" / run_hash(good[20]) / "provenance.json"
    assert json.loads(resumed.read_text("utf-8"))["resumed"]


def test_a_run_that_diverges_is_sealed_with_step_terms_and_traceback(spec, tmp_path):
    bad = wild(spec)
    with pytest.warns(UserWarning, match="seed 3.*failed. Diverged: loss became .* learning rate"):
        table = run([bad], store=tmp_path / "store")
    assert table["status"].tolist() == ["failed"] and table["run"].tolist() == [run_hash(bad)]
    found = failure(tmp_path / "store", bad)
    assert found["type"] == "Diverged" and found["step"] >= 2 and found["rests_on"] is None
    assert {"task", "explanation", "loss"} == set(found["terms"])
    assert found["terms"]["loss"] in ("nan", "inf")
    assert f"epoch 1, step {found['step']}" in found["message"]
    assert 'File "erlib/training/loop.py"' in found["traceback"]
    assert str(REPOSITORY) not in json.dumps(found) and sys.prefix not in json.dumps(found)
    left = {f.name for f in (tmp_path / "store" / "runs" / run_hash(bad)).iterdir()}
    assert left == {"spec.json", "failure.json", "DONE"}


@ONE_FAILED
def test_a_dev_loss_that_is_no_number_is_a_divergence_too(spec, tmp_path):
    """The last step's loss is computed before the step that ruins the weights."""
    bad = wild(spec, epochs=1, batch_size=48, warmup=0.0)
    run([bad], store=tmp_path / "store")
    assert failure(tmp_path / "store", bad)["message"].startswith("dev_loss became")


def test_a_failed_run_is_told_of_again_but_not_trained_until_it_is_forgotten(
    spec, tmp_path, monkeypatch
):
    store, train = open_store(tmp_path / "store"), making.train

    def out_of_memory(*_):
        raise MemoryError("3 GB asked for")

    monkeypatch.setattr(making, "train", out_of_memory)
    with pytest.warns(UserWarning, match="3 GB asked for; perhaps for lack of memory.*WORKERS=1"):
        first = run([spec], store=store.root)
    monkeypatch.setattr(making, "train", lambda *_: pytest.fail("tried again"))
    pd.testing.assert_frame_equal(first, run([spec], store=store.root))
    assert [path.name for path in store.forget("failed")] == [run_hash(spec)]
    monkeypatch.setattr(making, "train", train)
    assert run([spec], store=store.root)["status"].tolist() == ["done"]
    assert store.forget("failed") == []
    assert not (store.root / "runs" / run_hash(spec) / "failure.json").exists()


@ONE_FAILED
def test_what_rests_on_a_failed_run_is_failed_without_being_trained(spec, tmp_path, monkeypatch):
    bad, alone = wild(spec), replace(spec, objective=(term("task"),))
    resting = [
        replace(spec, start=bad),
        replace(alone, data=replace(spec.data, extract=Extraction(bad, 20))),
        replace(alone, data=replace(spec.data, taught=Teaching(bad))),
        replace(spec, start=replace(spec, start=bad, seed=8), seed=9),
    ]
    monkeypatch.setenv("ERLIB_WORKERS", "1")  # to see what is trained
    trained, train = [], making.train
    monkeypatch.setattr(making, "train", lambda s, *o: trained.append(s) or train(s, *o))
    store = tmp_path / "store"
    table = run([*resting, spec], store=store)
    assert table["status"].tolist() == ["failed"] * 4 + ["done"]
    assert trained == [bad, spec]
    assert [failure(store, s)["rests_on"] for s in resting[:3]] == [run_hash(bad)] * 3
    assert failure(store, resting[3])["rests_on"] == run_hash(resting[3].start)
    said = failure(store, resting[0])["message"]
    assert said.startswith(f"it needs run {run_hash(bad)}, which failed (loss became ")


@ONE_FAILED
def test_a_lost_run_is_replaced_and_a_failed_one_is_not(spec, tmp_path):
    rule = CheckpointRule("dev_task", bound=("dev_explanation", 0.0))
    hopeless = replace(spec, optimiser=replace(spec.optimiser, epochs=1, checkpoint=rule))
    table = run([hopeless, wild(spec)], store=tmp_path / "store")
    assert table["status"].tolist() == ["lost"] * 3 + ["failed"]


@ONE_FAILED
def test_evaluations_of_failed_and_lost_runs_are_holes_and_the_others_are_measured(spec, tmp_path):
    rule = CheckpointRule("dev_task", bound=("dev_explanation", 0.0))
    lost = replace(spec, optimiser=replace(spec.optimiser, epochs=1, checkpoint=rule))
    specs = [EvalSpec(s, spec.data, "dev", "predictions") for s in (wild(spec), spec, lost)]
    table = evaluate(specs, store=tmp_path / "store")
    assert table["status"].tolist() == ["failed", "done", "failed"]
    assert table["accuracy"].isna().tolist() == [True, False, True]
    assert failure(tmp_path / "store", specs[2])["message"].endswith("was lost and has no model")
    with pytest.raises(RuntimeError, match=f"evaluation {eval_hash(specs[0])}, which failed"):
        per_text(specs[0], store=tmp_path / "store")


def broken_kind(name, error):
    kind = KINDS[name]

    def per_text_of(this):
        if this.spec.split == "dev":
            error()
        return kind.per_text(this)

    return replace(kind, per_text=per_text_of)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_evaluation_that_raises_is_a_hole_that_is_named(spec, tmp_path, monkeypatch, workers):
    monkeypatch.setenv("ERLIB_WORKERS", workers)
    monkeypatch.setitem(KINDS, "attributions", broken_kind("attributions", lambda: 1 / 0))
    runs = [spec, spec.with_seed(4)]
    specs = [
        EvalSpec(s, spec.data, split, "plausibility", method="attention", target="gold")
        for s in runs
        for split in ("dev", "test")
    ]
    store = tmp_path / "store"
    run(runs, store=store)
    table = evaluate(specs, store=store)  # they use attributions, which are what fails
    assert table["status"].tolist() == ["failed", "done"] * 2
    source = replace(specs[0], kind="attributions")
    assert failure(store, specs[0])["rests_on"] == eval_hash(source)
    assert failure(store, source)["type"] == "ZeroDivisionError"
    store = tmp_path / "other"
    run(runs, store=store)
    with pytest.warns(UserWarning, match="attributions by attention on movies, dev · ER/.*Zero"):
        evaluate([source], store=store)


@ONE_FAILED
def test_an_evaluation_that_kills_its_workers_fails_and_the_others_of_its_run_do_not(
    spec, tmp_path, monkeypatch
):
    monkeypatch.setenv("ERLIB_WORKERS", "2")
    fatal = broken_kind("predictions", lambda: os.kill(os.getpid(), signal.SIGKILL))
    monkeypatch.setitem(KINDS, "predictions", fatal)
    runs = [spec, spec.with_seed(4)]
    specs = [EvalSpec(s, spec.data, x, "predictions") for s in runs for x in ("dev", "test")]
    store = tmp_path / "store"
    run(runs, store=store)
    assert evaluate(specs, store=store)["status"].tolist() == ["failed", "done"] * 2
    found = failure(store, specs[0])
    assert "ended from outside" in found["message"] and "ERLIB_WORKERS=1" in found["advice"]


@ONE_FAILED
def test_a_run_that_kills_every_worker_fails_and_the_others_finish(spec, tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_WORKERS", "2")
    train = making.train

    def fatal(this, *others):
        if this.seed == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return train(this, *others)

    monkeypatch.setattr(making, "train", fatal)
    runs = [spec.with_seed(seed) for seed in (3, 4, 5)]
    table = run(runs, store=tmp_path / "store")
    assert table["status"].tolist() == ["done", "failed", "done"]
    assert "ERLIB_WORKERS=1" in failure(tmp_path / "store", runs[1])["advice"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_interruptions_are_no_failures(spec, tmp_path, monkeypatch, error):
    def stop(*_):
        raise error

    monkeypatch.setattr(making, "train", stop)
    with pytest.raises(error):
        run([spec], store=tmp_path / "store")
    assert list(open_store(tmp_path / "store").sealed("runs")) == []


def test_a_full_disk_is_no_failure_of_the_run(spec, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(making, "train", full)
    with pytest.raises(OSError, match="No space left"):
        run([spec], store=tmp_path / "store")
    assert list(open_store(tmp_path / "store").sealed("runs")) == []


def test_a_run_whose_parent_is_killed_has_not_failed(spec, tmp_path, monkeypatch):
    """Its worker finds nobody to tell of its steps."""
    monkeypatch.setenv("ERLIB_WORKERS", "2")
    train = making.train

    def slow(this, folder, device, on_step, *others):
        def pause(terms, n):
            (tmp_path / f"worker {os.getpid()}").touch()
            time.sleep(0.1)
            on_step(terms, n)

        return train(this, folder, device, pause, *others)

    monkeypatch.setattr(making, "train", slow)
    parent = os.fork()
    if parent == 0:
        run([spec, spec.with_seed(9)], store=tmp_path / "store")
        os._exit(0)
    while len(workers := list(tmp_path.glob("worker *"))) < 2:
        time.sleep(0.01)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    pids = [int(path.name.split()[1]) for path in workers]
    psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], timeout=10)
    assert list(open_store(tmp_path / "store").sealed("runs")) == []


@pytest.mark.parametrize("rate", [-1e-3, float("nan"), float("inf"), "nonsense", True])
def test_a_learning_rate_that_is_none_is_refused_where_the_description_is_made(rate):
    for make in (
        lambda: OptimiserSpec(lr=rate),
        lambda: OptimiserSpec(head_lr=rate),
        lambda: update("constrained", term="explanation", bound=0.1, lr=rate),
        lambda: update("pilot", student_lr=rate),
    ):
        with pytest.raises(ValueError, match="lr'? must be a finite number.*, not"):
            make()


def test_no_learning_rate_is_too_high():
    assert OptimiserSpec(lr=1e300).lr == 1e300
