"""A saved epoch is what was saved, or it is put aside."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

import pytest

from erlib.config import CheckpointRule
from erlib.training import making
from erlib.training.checkpoints import Progress, keep_if_best
from erlib.training.identity import run_hash
from erlib.training.runs import run

RESULT = ("model.safetensors", "metrics.json", "history.csv")


@pytest.fixture
def long(spec):
    """Five epochs, of which the first stays the best: no accuracy rises by two."""
    rule = CheckpointRule("dev_accuracy", "max", min_delta=2.0, patience=None)
    return replace(spec, optimiser=replace(spec.optimiser, epochs=5, checkpoint=rule))


def interrupted(spec, store, monkeypatch, steps=22):
    """The folder of a run that was stopped in its fourth epoch, and how to train again."""
    train = making.train

    def stopping(this, folder, device, on_step, *others):
        done = []

        def count(terms, n):
            done.append(n)
            if sum(done) == steps:
                raise KeyboardInterrupt

        return train(this, folder, device, count, *others)

    with monkeypatch.context() as patch:
        patch.setattr(making, "train", stopping)
        with pytest.raises(KeyboardInterrupt):
            run([spec], store=store)
    return store / "runs" / f"{run_hash(spec)}.partial"


def flip(path):
    """One bit in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def halve(path):
    os.truncate(path, path.stat().st_size // 2)


def first_step(spec, store, monkeypatch):
    """From which step on a run is trained when it is started again."""
    train, begun = making.train, []

    def watching(this, folder, device, on_step, *others):
        def count(terms, n):
            if terms is None:
                begun.append(n)

        return train(this, folder, device, count, *others)

    with monkeypatch.context() as patch:
        patch.setattr(making, "train", watching)
        run([spec], store=store)
    return begun[0]


@pytest.mark.parametrize(
    ("file", "harm", "begins_at"),
    [
        ("state-3/model.safetensors", flip, 12),
        ("state-3/optimiser.safetensors", halve, 12),
        ("state-3/progress.json", halve, 12),
        ("state-3/model.safetensors", os.remove, 12),
        ("best-1/model.safetensors", flip, 0),
    ],
)
@pytest.mark.filterwarnings("ignore:.*was put aside:UserWarning")
def test_a_damaged_state_is_put_aside_and_the_run_ends_as_an_unbroken_one(
    long, tmp_path, monkeypatch, whole, file, harm, begins_at
):
    folder = interrupted(long, tmp_path / "store", monkeypatch)
    assert sorted(p.name for p in folder.glob("*-*")) == ["best-1", "state-2", "state-3"]
    harm(folder / file)
    assert first_step(long, tmp_path / "store", monkeypatch) == begins_at  # six steps an epoch
    made = tmp_path / "store" / "runs" / run_hash(long)
    for name in RESULT:
        assert (made / name).read_bytes() == whole[name], name
    said = (made / "log.txt").read_text().splitlines()
    assert said[0].startswith("saved state-3 was put aside: ") and file.split("/")[1] in said[0]
    assert len(said) == (1 if begins_at else 2)
    assert not list(made.glob("*-*"))


_whole = {}


@pytest.fixture
def whole(long, tmp_path):
    """The files of the run, never interrupted; trained once for all tests."""
    if not _whole:
        run([long], store=tmp_path / "whole")
        folder = tmp_path / "whole" / "runs" / run_hash(long)
        _whole.update({name: (folder / name).read_bytes() for name in RESULT})
    return _whole


@pytest.mark.parametrize("file", ["sums.json", "model.safetensors"])
def test_a_state_that_was_being_written_is_no_state_and_no_damage(
    long, tmp_path, monkeypatch, whole, file
):
    folder = interrupted(long, tmp_path / "store", monkeypatch)
    for name in {"sums.json", file}:
        (folder / "state-3" / name).unlink()
    assert first_step(long, tmp_path / "store", monkeypatch) == 12
    made = tmp_path / "store" / "runs" / run_hash(long)
    assert (made / "model.safetensors").read_bytes() == whole["model.safetensors"]
    assert not (made / "log.txt").exists()


def test_an_owner_is_told_of_a_state_that_was_put_aside(long, tmp_path, monkeypatch):
    folder = interrupted(long, tmp_path / "store", monkeypatch)
    flip(folder / "state-3" / "model.safetensors")
    with pytest.warns(UserWarning, match="seed 3.*state-3 was put aside: model.safetensors has ch"):
        run([long], store=tmp_path / "store")


def test_the_best_model_of_every_kept_state_is_kept_and_no_other(spec, tmp_path, monkeypatch):
    rising = CheckpointRule("epoch", "max", patience=None)  # every epoch is the best so far
    spec = replace(spec, optimiser=replace(spec.optimiser, epochs=5, checkpoint=rising))
    folder = interrupted(spec, tmp_path / "store", monkeypatch)
    assert sorted(p.name for p in folder.glob("*-*")) == ["best-2", "best-3", "state-2", "state-3"]
    shutil.rmtree(folder / "state-3")
    assert first_step(spec, tmp_path / "store", monkeypatch) == 12


class Saved:
    """A classifier of which nothing is asked but to be saved."""

    def save_pretrained(self, folder):
        folder.mkdir()


def best_epochs(rule, rows, folder):
    """The best epoch after each of these epochs."""
    progress, found = Progress(), []
    for row in rows:
        keep_if_best(progress, row, rule, Saved(), folder)
        found.append(progress.best_epoch)
    return found


def test_a_better_epoch_is_better_by_more_than_min_delta(tmp_path):
    rule = CheckpointRule("dev_loss", min_delta=0.25)
    rows = [{"dev_loss": loss} for loss in (1.0, 0.875, 0.75, 0.625, 0.5)]
    assert best_epochs(rule, rows, tmp_path) == [1, 1, 1, 4, 4]


def test_an_epoch_at_its_bound_does_not_count(tmp_path):
    rule = CheckpointRule("dev_loss", bound=("dev_explanation", 0.5))
    rows = [{"dev_loss": 1.0 - e, "dev_explanation": e} for e in (0.75, 0.5, 0.25)]
    assert best_epochs(rule, rows, tmp_path) == [None, None, 3]
