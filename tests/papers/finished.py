"""A finished study in which every number is made up, for tests of what is made from numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from erlib.catalogue import paper
from erlib.config import EvalSpec, RunSpec
from erlib.papers.cells import Spec, run_behind
from erlib.papers.study import Study
from erlib.training.stages import Results, Stage

NUMBERS = ("f1_macro", "f1_binary", "accuracy", "fraction", "consistency", "token_f1")
TEXTS = 10


class MadeUp(Study):
    """`table` is what every evaluation's own table is, of each epoch too."""

    table: Callable[[EvalSpec], pd.DataFrame]

    def texts(self, spec: Spec, *, keep: bool = True) -> pd.DataFrame:
        assert isinstance(spec, EvalSpec)
        found = self.table(spec)
        return found if "id" in found else found.assign(id=[f"t{i}" for i in range(len(found))])

    def each_epoch(self, run: RunSpec, measured: EvalSpec) -> pd.DataFrame:
        each = self.table(replace(measured, run=run))
        if "epoch" in each:
            return each
        epochs = range(1, run.optimiser.epochs + 1)
        return pd.concat([each.assign(epoch=e) for e in epochs], ignore_index=True)


def finished(
    name: str,
    settings,
    value: Callable[[Spec], float] = lambda spec: 0.5,
    *,
    table: Callable[[EvalSpec], pd.DataFrame] | None = None,
    accuracy: Callable[[RunSpec], float] = lambda run: 0.7,
    failed: Callable[[RunSpec], bool] = lambda run: False,
) -> MadeUp:
    """The paper's grid carried out: `value(spec)` is each number of a spec, and of each text.

    A run with an accuracy of at most .5 has not learnt its task. What is measured of a run that
    `failed` is a failure too.
    """
    results = carried_out(paper(name).module("cells").grid(settings), value, accuracy, failed)
    study = MadeUp(paper(name), settings, results)
    study.table = table or (lambda spec: texts_with(value(spec)))
    return study


def carried_out(
    stages: Sequence[Stage],
    value: Callable[[Spec], float],
    accuracy: Callable[[RunSpec], float] = lambda run: 0.7,
    failed: Callable[[RunSpec], bool] = lambda run: False,
) -> Results:
    """Results as `erlib.carry_out` gives them."""
    results: dict[str, pd.DataFrame] = {}
    for stage in stages:
        specs = list(stage.specs(results))
        assert len(set(specs)) == len(specs) <= stage.maximum, stage.name
        rows = [_row(f"{stage.name} {i}", s, value(s), accuracy) for i, s in enumerate(specs)]
        for row in rows:
            run = run_behind(row["spec"])
            if failed(run) or any(failed(r) for r in _rested_on(run)):
                row |= {"status": "failed"}
                row |= {key: np.nan for key, number in row.items() if isinstance(number, float)}
        results[stage.name] = pd.DataFrame(rows)
    return results


def _rested_on(run: RunSpec) -> list[RunSpec]:
    extract, taught = run.data.extract, run.data.taught
    return [r for r in (run.start, extract and extract.run, taught and taught.run) if r]


def _row(name: str, spec: Spec, number: float, accuracy: Callable[[RunSpec], float]) -> dict:
    if isinstance(spec, RunSpec):
        learnt = accuracy(spec)
        return {
            "spec": spec, "run": name, "status": "done", "seed": spec.seed, "replaces": None,
            "best_epoch": spec.optimiser.epochs,
            "dev_f1_macro": number, "dev_f1_binary": number, "dev_accuracy": learnt,
            "dev_majority": 0.5, "dev_chance_p": 0.001 if learnt > 0.5 else 0.5,
        }  # fmt: skip
    return {
        "spec": spec, "eval": name, "run": "its run", "status": "done", "seed": spec.run.seed,
        "kind": spec.kind, "corpus": spec.data.corpus, "method": spec.method,
        **dict.fromkeys(NUMBERS, number),
    }  # fmt: skip


def texts_with(mean: float) -> pd.DataFrame:
    """Ten texts: fractions with this mean, and answers of which so many are right."""
    right = np.arange(TEXTS) < round(mean * TEXTS)
    label = np.arange(TEXTS) % 2
    return pd.DataFrame(
        {
            "fraction": mean + 0.01 * (np.arange(TEXTS) - (TEXTS - 1) / 2),
            "label": label,
            "predicted": np.where(right, label, 1 - label),
        }
    )
