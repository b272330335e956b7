"""What do training for a criterion and explaining a text cost? Seconds, measured in turn.

Seconds of one machine say little; all methods are timed in the same run, on one thread where there
is no GPU, and ratios are reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from erlib.attributions import attribute
from erlib.config import RunSpec
from erlib.papers.holes import as_table, or_hole
from erlib.papers.ivra import systems
from erlib.papers.ivra.measured import row_run
from erlib.papers.ivra.systems import CRITERIA, LAST, MODULES, Learner, System
from erlib.papers.study import Study, made_once
from erlib.provenance import default_device
from erlib.timing import timed_in_turn
from erlib.training.loop import train
from erlib.training.notes import noted
from erlib.training.rows import rows_of
from erlib.training.workers import one_thread

TIMED = (LAST, "Input X Gradients", "Integrated Gradients", "LIME", *MODULES)  # Figure 10


@made_once
@or_hole(as_table)
@noted
def training_times(study: Study) -> pd.DataFrame:
    """Figure 9: seconds until N texts have been seen, for the Baseline and for every criterion.

    Columns: system, repetition, texts, seconds. The systems take turns; only steps are timed, not
    loading, validating and saving.
    """
    settings = study.settings
    sizes, device = settings.grid["timing"], settings.device or default_device()
    learner = Learner(settings, settings.grid["studied"], systems.task_named(settings, "SNLI"))
    specs = {
        "Baseline": systems.baseline(learner, 0),
        **{c: systems.trained(learner, System((c,)), 0, "short") for c in CRITERIA},
    }
    batch = systems.recipe(learner)["batch_size"]
    specs = {name: _one_epoch(spec, max(sizes["texts"]), batch) for name, spec in specs.items()}
    rows = []
    for repetition in range(sizes["repeat"]):
        for name, spec in specs.items():
            ends = _step_ends(spec, device)
            for texts in sizes["texts"]:
                step = ceil(texts / batch)
                rows.append({"system": name, "repetition": repetition, "texts": texts,
                             "seconds": ends[step] - ends[0]})  # fmt: skip
    return pd.DataFrame(rows)


def _one_epoch(spec: RunSpec, texts: int, batch: int) -> RunSpec:
    """The same training on `texts` texts, once, in equal batches; any start does for the clock."""
    return replace(
        spec,
        data=replace(spec.data, train_rows=texts, dev_rows=batch),
        optimiser=replace(spec.optimiser, epochs=1, batch_size=batch),
        start=None,
    )


def _step_ends(spec: RunSpec, device: str) -> list[float]:
    """When training began, and when each of its steps was done."""
    ends: list[float] = []
    with TemporaryDirectory() as folder, one_thread(device):
        train(spec, Path(folder), device, lambda loss, count: ends.append(time.perf_counter()))
    return ends


@made_once
@or_hole(as_table)
@noted
def explaining_times(study: Study) -> pd.DataFrame:
    """Figure 10: seconds to explain N texts. Columns: method, repetition, texts, seconds."""
    settings, home = study.settings, systems.core(study.settings)
    sizes, device = settings.grid["timing"], settings.device or default_device()
    data = systems.data_spec(home, systems.recipe(home))
    texts = rows_of(data, "test", max(sizes["explained"]))
    runs = {name: row_run(home, name, "SIM", settings.seeds[0]) for name in (LAST, *MODULES)}
    models = {name: study.model(run) for name, run in runs.items()}
    rows = []
    for count in sizes["explained"]:
        calls: list[Callable[[], Any]] = [
            partial(
                attribute,
                models.get(name, models[LAST]),
                texts.select(range(count)),
                systems.method_of(name),
                variant="ivra",
                options=dict(systems.options_of(settings, name)),
            )
            for name in TIMED
        ]
        with one_thread(device):
            timings = timed_in_turn(calls, repeat=1 + sizes["repeat"], watched=False)
        for name, timing in zip(TIMED, timings, strict=True):
            rows += [
                {"method": name, "repetition": i, "texts": count, "seconds": seconds}
                for i, seconds in enumerate(timing.runs[1:])  # the first warms up
            ]
    return pd.DataFrame(rows)


def at_the_largest(times: pd.DataFrame) -> pd.DataFrame:
    """Seconds at the largest size: a row per repetition, a column per system or method."""
    last, name = times[times["texts"] == times["texts"].max()], times.columns[0]
    wide = last.pivot(index="repetition", columns=name, values="seconds")
    return wide[last[name].unique()]
