"""How are many models measured? `evaluate` makes what is missing, and loads each model once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

from erlib.attributions.decompx import decompositions_remembered
from erlib.config import EvalSpec, RunSpec, check_executor, listed
from erlib.provenance import default_device
from erlib.training.failures import FAILED, RestsOnFailure, WorkerKilled
from erlib.training.identity import eval_hash, run_hash
from erlib.training.listing import eval_label, failed_words
from erlib.training.making import fail, make_evaluation, run_of, table_of
from erlib.training.progress import progress_bar
from erlib.training.store import Sealed, StorePath, open_store
from erlib.training.workers import side_by_side, worker_count


def evaluate(
    specs: Sequence[EvalSpec],
    *,
    executor: str = "local",
    store: StorePath = None,
    device: str | None = None,
) -> pd.DataFrame:
    """Measure what is missing; one row per evaluation with the means over its texts.

    The row of one that failed, or whose run failed or was lost, has the status `failed` and no
    means.
    """
    check_executor(executor)
    specs = listed(specs, EvalSpec, "erlib.evaluate")
    kept, device = open_store(store), device or default_device()

    def missing() -> list[EvalSpec]:
        return [s for s in dict.fromkeys(specs) if kept.get("evals", eval_hash(s)) is None]

    def measure(group: list[EvalSpec], report: Callable[[int], None]) -> None:
        with decompositions_remembered():
            for spec in group:
                make_evaluation(kept, spec, device)
                report(1)

    def fail_first(group: list[EvalSpec]) -> None:
        """The one that the worker was at; the others of the group are taken up again."""
        first = next(s for s in group if kept.get("evals", eval_hash(s)) is None)
        fail(kept, "evals", eval_hash(first), first, WorkerKilled())

    wanted = missing()
    with progress_bar("evaluating", len(specs), "evaluation") as bar:
        bar.update(len(specs) - len(wanted))
        left = wanted
        while left:
            by_run: dict[RunSpec, list[EvalSpec]] = {}  # a run is loaded once for all of its own
            for spec in left:
                by_run.setdefault(run_of(spec), []).append(spec)
            groups = sorted(by_run.values(), key=len, reverse=True)
            side_by_side(measure, groups, worker_count(device), bar.update, killed=fail_first)
            left = missing()
    made = {spec: make_evaluation(kept, spec, device) for spec in specs}
    for spec in wanted:
        if said := failed_words(made[spec]):
            warnings.warn(f"{eval_label(made[spec])}: {said}", stacklevel=2)
    return pd.DataFrame([eval_row(made[spec], spec) for spec in specs])


def eval_row(sealed: Sealed, spec: EvalSpec) -> dict[str, Any]:
    """What `evaluate` says of one evaluation: identity, status, and the means over its texts."""
    return {
        "eval": sealed.name,
        "status": sealed.status,
        "run": run_hash(run_of(spec)),
        "seed": run_of(spec).seed,
        "corpus": spec.data.corpus,
        "split": spec.split,
        "kind": spec.kind,
        "method": spec.method,
        "variant": spec.variant,
        "spec": spec,
        **sealed.read("summary.json"),
    }


def per_text(spec: EvalSpec, *, store: StorePath = None, device: str | None = None) -> pd.DataFrame:
    """The table of an evaluation, one row (or several) per text; measured first if missing."""
    return table_of(open_store(store), spec, device or default_device())


def per_epoch(spec: RunSpec, each: EvalSpec, *, store: StorePath = None) -> pd.DataFrame:
    """The tables of one of `spec.each_epoch`, one below the other with an `epoch` column."""
    sealed = open_store(store).get("runs", run_hash(spec))
    if sealed is None:
        raise ValueError(f"run {run_hash(spec)} has not been trained; call erlib.run([spec]) first")
    if sealed.status == FAILED:
        raise RestsOnFailure(sealed)
    tables = [
        pd.read_parquet(file).assign(epoch=int(file.parent.name))
        for file in sealed.path.glob(f"epochs/*/{eval_hash(each)}.parquet")
    ]
    return pd.concat(tables).sort_values("epoch", kind="stable", ignore_index=True)
