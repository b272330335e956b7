"""A model that was dropped is no damage, and comes back byte for byte when it is needed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from erlib.cli import main
from erlib.config import EvalSpec, OptimiserSpec
from erlib.explorer.models import trained_runs
from erlib.models import load_classifier
from erlib.training import making
from erlib.training.evaluating import evaluate
from erlib.training.identity import eval_hash, run_hash
from erlib.training.making import make_run
from erlib.training.runs import run, trained_folder
from erlib.training.stages import Stage, carry_out, listed_in, no_model, nothing
from erlib.training.store import MODEL, Store, checksum, open_store

HERE = {"executor": "local", "device": "cpu"}


@pytest.fixture
def dropped(spec, tmp_path, monkeypatch):
    """The folder of a short run whose model was dropped, and the checksums of what went."""
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    spec = replace(spec, optimiser=replace(spec.optimiser, epochs=1))
    run([spec])
    path = trained_folder(spec)
    sums = {file: checksum(path / file) for file in MODEL}
    assert open_store().drop_model(path.name) > 0
    return spec, path, sums


@pytest.fixture
def trainings(monkeypatch):
    """The seeds of the runs that are trained, in order."""
    seeds, train = [], making.train
    monkeypatch.setattr(
        making, "train", lambda spec, *others: seeds.append(spec.seed) or train(spec, *others)
    )
    monkeypatch.setenv("ERLIB_WORKERS", "1")
    return seeds


def test_a_run_without_its_model_is_sealed_and_its_scores_are_read_as_before(dropped, trainings):
    spec, path, sums = dropped
    assert not any((path / file).exists() for file in MODEL)
    assert json.loads((path / "DONE").read_text())["dropped"] == sums
    assert Store(path.parents[1]).verify() == {path: []}
    assert run([spec])["status"].tolist() == ["done"] and trainings == []


def test_damage_of_the_other_files_is_still_found(dropped):
    _, path, _ = dropped
    (path / "metrics.json").write_text("{}")
    assert Store(path.parents[1]).verify() == {path: ["metrics.json has changed"]}


def test_a_new_evaluation_trains_it_again_to_the_same_bytes(dropped, trainings):
    spec, path, sums = dropped
    table = evaluate([EvalSpec(spec, spec.data, "dev", "predictions")])
    assert trainings == [spec.seed]
    assert {file: checksum(path / file) for file in MODEL} == sums
    assert table["accuracy"].item() == run([spec])["dev_accuracy"].item()
    assert Store(path.parents[1]).verify()[path] == []
    assert "dropped" not in json.loads((path / "DONE").read_text())
    assert not path.with_name(f"{path.name}.partial").exists()


def test_a_run_that_starts_from_it_trains_it_again_first(dropped, trainings):
    spec, _, _ = dropped
    run([replace(spec, seed=7, start=spec)])
    assert trainings == [spec.seed, 7]


def of_another_machine(path):
    """As if other numbers had come out where a run was trained."""
    done = json.loads((path / "DONE").read_text())
    done["dropped"]["model.safetensors"] = "0" * 64
    (path / "DONE").write_text(json.dumps(done))


def test_a_model_that_comes_out_otherwise_is_measured_anew_and_nothing_of_the_old_one_is_left(
    dropped, trainings, capsys
):
    spec, path, sums = dropped
    old, other, new = (
        EvalSpec(s, spec.data, split, "predictions")
        for s, split in ((spec, "dev"), (spec.with_seed(7), "dev"), (spec, "test"))
    )
    evaluate([old, other])
    open_store().drop_model(path.name)
    of_another_machine(path)
    del trainings[:]
    stages = [
        Stage("runs", lambda r: [spec], 1, [spec], asked=listed_in([old, new]), keeps=no_model),
        Stage("measured", lambda r: [old, new], 2, [old, new]),
    ]
    before = {s.name: (s.path / "DONE").stat().st_ino for s in open_store().sealed("evals")}
    carry_out(stages, store=None, **HERE)
    assert trainings == [spec.seed]  # once, for both
    assert "it and what was measured of it are made anew" in capsys.readouterr().err
    after = {s.name: (s.path / "DONE").stat().st_ino for s in open_store().sealed("evals")}
    assert len(after) == 3
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {eval_hash(old)}
    done = json.loads((path / "DONE").read_text())
    assert done["dropped"] == sums and not any(Store(path.parents[1]).verify().values())


def test_a_kill_between_seal_and_removal_is_no_damage_and_is_finished_later(dropped):
    _, path, _ = dropped
    (path / "model.safetensors").write_bytes(b"left over")
    store = Store(path.parents[1])
    assert store.verify() == {path: []}
    assert store.drop_model(path.name) == len(b"left over")
    assert Store(path.parents[1]).verify() == {path: []}


def test_loading_it_names_the_command_that_brings_it_back(dropped, capsys):
    _, path, _ = dropped
    command = f"runs restore {path.name}"
    for name in (path.name, str(path)):
        with pytest.raises(ValueError, match=command):
            load_classifier(name)
    assert trained_runs(open_store()) == {}  # nor does the explorer offer it
    assert main(command.split()) == 0 and "has its model" in capsys.readouterr().out
    assert load_classifier(path.name).head == "er"
    assert list(trained_runs(open_store()).values()) == [str(path)]


def test_gc_drops_the_models_that_are_not_kept(spec, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    short = replace(spec, optimiser=OptimiserSpec(epochs=1))
    run([short, short.with_seed(4)])
    open_store().keep_model(run_hash(short))
    assert main(["runs", "gc", "--weights"]) == 0
    assert "1 models dropped" in capsys.readouterr().out
    has = {s.name: not s.dropped for s in open_store().sealed("runs")}
    assert has == {run_hash(short): True, run_hash(short.with_seed(4)): False}
    assert main(["runs", "verify"]) == 0
    assert main(["runs", "ls", "--weights"]) == 2


def test_nothing_is_dropped_while_somebody_else_works_on_the_store(dropped):
    spec, path, _ = dropped
    trained_folder(spec)
    other = Store(path.parents[1])  # its locks are those of another process
    with other.in_use():
        assert open_store().drop_model(path.name) == 0
    assert open_store().drop_model(path.name) > 0


def test_a_grid_drops_what_it_does_not_keep_and_trains_nothing_twice(spec, tmp_path, trainings):
    start = replace(spec, optimiser=OptimiserSpec(epochs=1), seed=1)
    children = [replace(start, seed=10 + i, start=start) for i in range(3)]
    evals = [EvalSpec(s, s.data, "dev", "predictions") for s in (start, *children)]
    probe = EvalSpec(children[1], spec.data, "test", "predictions")
    stages = [
        Stage("starts", lambda r: [start], 1, [start], asked=listed_in(evals), keeps=no_model),
        Stage("runs", lambda r: children, 3, children, asked=listed_in(evals, [probe]),
              keeps=lambda s: s.seed == 12),
        Stage("looked at", lambda r: [start.with_seed(5)], 1, start, asked=nothing, keeps=no_model),
        Stage("measured", lambda r: [*evals, probe], 5, evals[0]),
    ]  # fmt: skip
    results = carry_out(stages, store=tmp_path / "store", **HERE)
    assert trainings == [1, 10, 11, 12, 5]
    store = Store(tmp_path / "store")
    assert {s.name for s in store.sealed("runs") if not s.dropped} == {run_hash(children[2])}
    assert not any(store.verify().values())
    again = carry_out(stages, store=tmp_path / "store", **HERE)
    assert len(trainings) == 5 and again["measured"].equals(results["measured"])


def test_a_grid_keeps_every_model_unless_it_says_otherwise(spec, tmp_path):
    short = replace(spec, optimiser=OptimiserSpec(epochs=1))
    child = replace(short, seed=9, start=short)
    carry_out([Stage("runs", lambda r: [child], 1, [child])], store=tmp_path / "store", **HERE)
    assert not any(sealed.dropped for sealed in Store(tmp_path / "store").sealed("runs"))


def test_an_interrupted_training_of_a_dropped_run_goes_on(spec, tmp_path, monkeypatch):
    store, seen = Store(tmp_path / "store"), []
    sealed = make_run(store, spec, "cpu", lambda *_: None)
    store.drop_model(sealed.name)

    def stop(count, loss, name):
        seen.append(count)
        if sum(seen) == 9:  # of 18 steps, in the second of three epochs
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_run(store, spec, "cpu", stop, model=True)
    assert store.get("runs", sealed.name).dropped
    make_run(store, spec, "cpu", lambda *_: None, model=True)
    assert Store(tmp_path / "store").verify() == {sealed.path: []}
    assert not store.get("runs", sealed.name).dropped
