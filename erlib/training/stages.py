"""In what order does a notebook's grid unfold, and what will it cost?

A grid is a list of stages. A stage turns the results so far into the next descriptions: bounds from
explanation-only runs, evaluations of the runs that were not lost, students of finished teachers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil

import pandas as pd

from erlib.config import DataSpec, EvalSpec, RunSpec
from erlib.data import corpora, corpus_report
from erlib.data.absent import MissingCorpus
from erlib.data.planted import parts_of
from erlib.provenance import default_device
from erlib.training.evaluating import evaluate
from erlib.training.identity import run_hash
from erlib.training.making import origins, with_origins
from erlib.training.runs import run
from erlib.training.schedule import Models, Order, make_all, most_at_once
from erlib.training.store import StorePath, open_store
from erlib.training.students import LEARNT, OWN, PARTS, UNSEEN

Results = Mapping[str, pd.DataFrame]
Specs = Sequence[RunSpec] | Sequence[EvalSpec]
FORWARD = 0.4  # what a forward pass costs, in training steps


def every_model(run: RunSpec) -> bool:
    """Keep them all."""
    return True


def no_model(run: RunSpec) -> bool:
    """Keep none."""
    return False


def not_told(run: RunSpec) -> None:
    """What is asked of a run depends on results."""


def nothing(run: RunSpec) -> list[EvalSpec]:
    """A run is only looked at for what it logged."""
    return []


def listed_in(*evals: Sequence[EvalSpec]) -> Callable[[RunSpec], list[EvalSpec]]:
    """What is asked of a run, where all that is asked of any is known."""
    by_run: dict[RunSpec | None, list[EvalSpec]] = {}
    for spec in chain.from_iterable(evals):
        by_run.setdefault(spec.run, []).append(spec)
    return lambda run: by_run.get(run, [])


@dataclass(frozen=True)
class Stage:
    """One step of a grid: runs or evaluations, `maximum` of them at the most.

    `sample` is one of its descriptions, from which the cost of a stage that cannot be listed
    before its results are known is estimated; or all of them, where they are known; or, `guessed`,
    as many that look like them.

    Of a stage of runs: `keeps` says whose models stay on disk when the grid is done. The others are
    dropped as soon as what `asked` names is measured and nothing that is known rests on them; None:
    more may be asked than can be told, and they stay until the end. What is asked of a model that
    was dropped trains it again.
    """

    name: str
    specs: Callable[[Results], Specs]
    maximum: int
    sample: RunSpec | EvalSpec | Specs
    guessed: bool = False
    asked: Callable[[RunSpec], Sequence[EvalSpec] | None] = not_told
    keeps: Callable[[RunSpec], bool] = every_model

    @property
    def listed(self) -> Specs:
        """Its descriptions, if they are known before any result."""
        return self.sample if isinstance(self.sample, Sequence) and not self.guessed else []


def carry_out(
    stages: Sequence[Stage],
    *,
    executor: str,
    store: StorePath,
    device: str | None,
    order: Order = list,
) -> dict[str, pd.DataFrame]:
    """The results of every stage by name; what is in the store already is only read.

    Runs that are known before any result are trained first and together, whatever stage they
    belong to, so that no core waits for the last run of a stage; and measured at once. `order`
    says in which order those are made that are missing.
    """
    kept, device = open_store(store), device or default_device()
    models = Models(lambda spec: kept.drop_model(run_hash(spec)))
    with kept.in_use():
        make_all(kept, models, _known(stages, models), [], device, order)
        results: dict[str, pd.DataFrame] = {}
        for stage in stages:
            specs = list(stage.specs(results))
            if len(specs) > stage.maximum:
                raise RuntimeError(
                    f"stage '{stage.name}' has {len(specs)} items and announced {stage.maximum}"
                )
            runs = [s for s in specs if isinstance(s, RunSpec)]
            measured = [s for s in specs if isinstance(s, EvalSpec)]
            _expect(stage, runs, models)
            _expect_origins(stage, runs, models)
            make_all(kept, models, runs, measured, device, order)
            if runs:
                table = run(runs, executor=executor, store=store, device=device)
                _expect(stage, table["spec"], models)  # also those in the place of lost ones
            else:
                table = evaluate(measured, executor=executor, store=store, device=device)
            results[stage.name] = table
        for spec in models.kept:
            kept.keep_model(run_hash(spec))
        models.settle()
    return results


def _known(stages: Sequence[Stage], models: Models) -> list[RunSpec]:
    """The runs that need no result."""
    known: dict[RunSpec, None] = {}
    for stage in stages:
        listed = [spec for spec in stage.listed if isinstance(spec, RunSpec)]
        _expect(stage, listed, models)
        known |= dict.fromkeys(listed)
    for stage in stages:
        _expect_origins(stage, known.keys() & set(stage.listed), models)
    return list(known)


def _expect(stage: Stage, runs: Iterable[RunSpec], models: Models) -> None:
    for spec in runs:
        models.expect(spec, stage.asked(spec), keep=stage.keeps(spec))


def _expect_origins(stage: Stage, runs: Iterable[RunSpec], models: Models) -> None:
    """Runs that are in no stage, but rested on: what else may rest on them cannot be told."""
    for spec in runs:
        for start in with_origins(origins(spec)):
            if start not in models.asked:
                models.expect(start, None, keep=stage.keeps(start))


def plan(
    stages: Sequence[Stage],
    *,
    seconds_per_step: float = 0.0,
    gigabytes: Callable[[RunSpec], float],
    seconds: Callable[[RunSpec | EvalSpec], float] | None = None,
) -> pd.DataFrame:
    """For each stage, the most it can take: items, optimiser steps, hours, and disk for the models
    that it keeps, of which one has so many `gigabytes`.

    `seconds`: of a run or an evaluation, where that is counted; else each step takes as long.
    """
    rows, kept = [], set()
    for stage in stages:
        row = {"stage": stage.name, "at most": stage.maximum}
        sample = stage.sample
        each = sample if isinstance(sample, Sequence) else [sample] * stage.maximum
        if isinstance(each[0], RunSpec):
            steps = sum(planned_steps(s) for s in each if isinstance(s, RunSpec))
            row |= {
                "what": "runs",
                "steps": steps,
                "hours": steps * seconds_per_step / 3600,
                "gigabytes": sum(gigabytes(s) for s in _kept(stage) if s not in kept),
            }
            kept.update(_kept(stage))
        else:
            batches = sum(planned_batches(s) for s in each if isinstance(s, EvalSpec))
            row |= {
                "what": "evaluations",
                "steps": 0,
                "gigabytes": 0.0,
                "hours": batches * FORWARD * seconds_per_step / 3600,
            }
        if seconds is not None:
            row["hours"] = sum(map(seconds, each)) / 3600
        rows.append(row)
    return pd.DataFrame(rows)


def _kept(stage: Stage) -> list[RunSpec]:
    """The runs of a stage that keep their models, as far as its samples tell."""
    sample = stage.sample
    each = sample if isinstance(sample, Sequence) else [sample] * stage.maximum
    return [spec for spec in each if isinstance(spec, RunSpec) and stage.keeps(spec)]


def peak(stages: Sequence[Stage], size: Callable[[RunSpec], float], workers: int) -> float:
    """The most that a grid's models take on disk at a time, in the unit of `size`.

    Beside those that are finished, each worker has one more, and the states of the run in work. A
    stage of which only one description is known counts with all its runs, unless all that is asked
    of them can be told.
    """
    there: set[RunSpec] = set()
    models, most, more = Models(there.discard), 0.0, 0.0
    for runs in (_known(stages, models), *(_guessed(stage, models) for stage in stages)):
        most = max(most, most_at_once(models, runs, there, size))
    for stage in stages:
        if isinstance(stage.sample, RunSpec) and stage.asked(stage.sample) is None:
            more += stage.maximum * size(stage.sample)
    every = [*models.asked, *(s.sample for s in stages if isinstance(s.sample, RunSpec))]
    return most + more + workers * max(size(s) * (1 + _states(s)) for s in every)


def _guessed(stage: Stage, models: Models) -> list[RunSpec]:
    guesses = stage.sample if stage.guessed and isinstance(stage.sample, Sequence) else []
    runs = [spec for spec in guesses if isinstance(spec, RunSpec)]
    _expect(stage, runs, models)
    _expect_origins(stage, runs, models)
    return runs


def _states(spec: RunSpec) -> int:
    """How many times the model a run in work takes: the best so far, and after each epoch but the
    last a state (the model and AdamW's two moments), for a moment beside the one before."""
    return 1 + 3 * min(2, spec.optimiser.epochs - 1)


def planned_steps(spec: RunSpec) -> int:
    """Optimiser steps without early stopping, from the sizes the registry states."""
    rows = expected_rows(spec.data, "train", spec.data.train_rows)
    return ceil(rows / spec.optimiser.batch_size) * spec.optimiser.epochs


def planned_batches(spec: EvalSpec) -> int:
    """Batches of 32 texts."""
    return ceil(expected_rows(spec.data, spec.split, spec.rows) / 32)


def expected_rows(data: DataSpec, split: str, rows: int | None) -> int:
    """As many as asked for, or as the papers say the corpus has; of a corpus that no paper counts,
    as many as are there. A student has its part of test."""
    part = OWN.get(split, split) if data.taught else split
    share = {LEARNT: 1 / PARTS, UNSEEN: 1 - 1 / PARTS}.get(part, 1.0)
    split = "test" if part in OWN.values() else part
    base = parts_of(data.corpus).base
    stated = corpora()[base].expected.values() if base in corpora() else ()
    known = [sizes[split] for sizes in stated if split in sizes]
    if rows is None and not known:
        known = [_there(data, split)]
    there = None if not known else max(1, int(share * max(known)))
    return min(x for x in (rows, there) if x is not None)


def _there(data: DataSpec, split: str) -> int:
    """How many texts a split has; none of a corpus that cannot be had."""
    try:
        return corpus_report(data.corpus, data.source).sizes.get(split, 0)
    except MissingCorpus:
        return 0
