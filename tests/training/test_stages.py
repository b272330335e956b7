"""A grid unfolds stage by stage, and says beforehand what it can cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from erlib.config import DataSpec, EvalSpec, OptimiserSpec
from erlib.training import schedule
from erlib.training.stages import Stage, carry_out, no_model, nothing, peak, plan

HERE = {"executor": "local", "device": "cpu"}


def test_a_stage_sees_the_results_of_those_before_it(spec, tmp_path):
    def measure(results):
        return [EvalSpec(s, s.data, "dev", "predictions") for s in results["train"]["spec"]]

    stages = [
        Stage("train", lambda results: [spec], 1, spec),
        Stage("measure", measure, 1, EvalSpec(spec, spec.data, "dev", "predictions")),
    ]
    results = carry_out(stages, store=tmp_path / "store", **HERE)
    assert results["measure"]["accuracy"].item() == results["train"]["dev_accuracy"].item()


def test_missing_runs_are_made_in_the_order_that_is_wished(spec, tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_WORKERS", "1")
    runs, asked = [spec.with_seed(seed) for seed in range(3)], []

    def backwards(missing):
        asked.append(list(missing))
        return missing[::-1]

    stages = [Stage("train", lambda results: runs, 3, runs)]
    results = carry_out(stages, store=tmp_path / "store", **HERE, order=backwards)
    made = sorted((tmp_path / "store/runs").iterdir(), key=lambda f: f.stat().st_mtime_ns)
    assert [f.name for f in made] == list(results["train"]["run"])[::-1]
    assert list(results["train"]["spec"]) == runs and asked == [runs]
    carry_out(stages, store=tmp_path / "store", **HERE, order=backwards)
    assert asked == [runs]  # nothing was missing, so nobody was asked


def test_a_stage_that_grows_beyond_its_announcement_is_refused(spec, tmp_path):
    stage = Stage("train", lambda results: [spec, spec.with_seed(9)], 1, spec)
    with pytest.raises(RuntimeError, match="has 2 items and announced 1"):
        carry_out([stage], store=tmp_path / "store", **HERE)


def test_the_plan_counts_steps_hours_and_disk_without_loading_data(spec):
    big = replace(
        spec, data=DataSpec("sst", "hub", 64), optimiser=OptimiserSpec(epochs=25, batch_size=32)
    )
    row = plan(
        [Stage("train", lambda results: [], 15, big)],
        seconds_per_step=0.36,
        gigabytes=lambda _: 0.5,
    ).iloc[0]
    assert row["steps"] == 15 * 25 * 217  # 6,920 sentences in batches of 32
    assert row["hours"] == pytest.approx(15 * 25 * 217 * 0.36 / 3600)
    assert row["gigabytes"] == 7.5


def test_a_stage_whose_items_are_known_is_planned_item_by_item(spec):
    runs = [
        replace(spec, data=DataSpec("sst", "hub", 64, rows), optimiser=OptimiserSpec(epochs=2))
        for rows in (32, 320)
    ]
    stage = Stage("train", lambda results: runs, 2, runs)
    row = plan([stage], seconds_per_step=1, gigabytes=lambda _: 1).iloc[0]
    assert row["steps"] == 2 * (1 + 10)


def test_runs_that_are_known_beforehand_are_trained_together(spec, tmp_path, monkeypatch):
    calls = []
    make_all = schedule.make_all
    monkeypatch.setattr(
        "erlib.training.stages.make_all",
        lambda store, models, runs, *others: (
            calls.append(list(runs)) or make_all(store, models, runs, *others)
        ),
    )
    other = spec.with_seed(9)
    stages = [
        Stage("first", lambda results: [spec], 1, [spec]),
        Stage("second", lambda results: [other], 1, [other]),
    ]
    results = carry_out(stages, store=tmp_path / "store", **HERE)
    assert calls == [[spec, other], [spec], [other]]
    assert [results[name]["seed"].item() for name in ("first", "second")] == [3, 9]


def test_the_peak_has_what_is_kept_or_held_and_for_each_worker_a_model_and_its_states(spec):
    start = replace(spec, optimiser=OptimiserSpec(epochs=1))
    children = [replace(start, seed=i, start=start) for i in range(10, 20)]
    stages = [
        Stage("start", lambda r: [start], 1, [start], keeps=no_model),
        Stage("swept", lambda r: children, 10, children, asked=nothing, keeps=no_model),
        Stage("chosen", lambda r: [], 3, start.with_seed(7), keeps=no_model),
    ]
    # the start, one child and the three that cannot be told; a model and a best epoch per worker
    assert peak(stages, lambda _: 1.0, workers=2) == 2 + 3 + 2 * 2
    longer = [replace(s, optimiser=OptimiserSpec(epochs=3), start=None) for s in (start, *children)]
    many = [Stage("all", lambda r: longer, 11, longer)]
    assert peak(many, lambda _: 1.0, workers=1) == 11 + 1 + 1 + 2 * 3  # two states for a moment
