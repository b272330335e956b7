"""In what order does a notebook's grid unfold, and what will it cost?

A grid is a list of stages. A stage turns the results so far into the next descriptions: bounds from
explanation-only runs, evaluations of the runs that were not lost, students of finished teachers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import pandas as pd

from erlib.config import EvalSpec, RunSpec
from erlib.data import corpora
from erlib.training.executors import StorePath, evaluate, run

Results = Mapping[str, pd.DataFrame]
Specs = Sequence[RunSpec] | Sequence[EvalSpec]
FORWARD = 0.4  # what a forward pass costs, in training steps


@dataclass(frozen=True)
class Stage:
    """One step of a grid: runs or evaluations, `maximum` of them at the most.

    `sample` is one of its descriptions, from which the cost of a stage that cannot be listed
    before its results are known is estimated; or all of them, where they are known.
    """

    name: str
    specs: Callable[[Results], Specs]
    maximum: int
    sample: RunSpec | EvalSpec | Specs


def carry_out(
    stages: Sequence[Stage], *, executor: str, store: StorePath, device: str | None
) -> dict[str, pd.DataFrame]:
    """The results of every stage by name; what is in the store already is only read.

    Runs that are known before any result are trained first and together, whatever stage they
    belong to, so that no core waits for the last run of a stage.
    """
    listed = [stage.sample for stage in stages if isinstance(stage.sample, Sequence)]
    known = [spec for specs in listed for spec in specs if isinstance(spec, RunSpec)]
    run(known, executor=executor, store=store, device=device)
    results: dict[str, pd.DataFrame] = {}
    for stage in stages:
        specs = list(stage.specs(results))
        if len(specs) > stage.maximum:
            raise RuntimeError(
                f"stage '{stage.name}' has {len(specs)} items and announced {stage.maximum}"
            )
        runs = [s for s in specs if isinstance(s, RunSpec)]
        measured = [s for s in specs if isinstance(s, EvalSpec)]
        results[stage.name] = (
            run(runs, executor=executor, store=store, device=device)
            if runs
            else evaluate(measured, executor=executor, store=store, device=device)
        )
    return results


def plan(
    stages: Sequence[Stage], *, seconds_per_step: float, megabytes_per_run: float
) -> pd.DataFrame:
    """For each stage, the most it can take: items, optimiser steps, hours and disk."""
    rows = []
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
                "gigabytes": stage.maximum * megabytes_per_run / 1024,
            }
        else:
            batches = sum(planned_batches(s) for s in each if isinstance(s, EvalSpec))
            row |= {
                "what": "evaluations",
                "steps": 0,
                "gigabytes": 0.0,
                "hours": batches * FORWARD * seconds_per_step / 3600,
            }
        rows.append(row)
    return pd.DataFrame(rows)


def planned_steps(spec: RunSpec) -> int:
    """Optimiser steps without early stopping, from the sizes the registry states."""
    rows = _expected_rows(spec.data.corpus, "train", spec.data.train_rows)
    return ceil(rows / spec.optimiser.batch_size) * spec.optimiser.epochs


def planned_batches(spec: EvalSpec) -> int:
    """Batches of 32 texts."""
    return ceil(_expected_rows(spec.data.corpus, spec.split, spec.rows) / 32)


def _expected_rows(corpus: str, split: str, rows: int | None) -> int:
    """As many as asked for, or as the papers say the corpus has."""
    known = [sizes[split] for sizes in corpora()[corpus].expected.values() if split in sizes]
    if rows is None and not known:
        raise ValueError(f"the registry does not say how many {split} texts {corpus} has")
    return min(x for x in (rows, max(known, default=None)) if x is not None)
