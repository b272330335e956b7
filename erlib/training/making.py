"""How is a result made that is missing? One run or one evaluation, after all that it rests on.

An evaluation rests on its run, and a run on evaluations: those with the rationales that it learns
from, or with what its teacher says. The store's locks make this safe in several processes at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from math import ceil
from pathlib import Path
from typing import Any

import pandas as pd
from datasets import Dataset

from erlib.config import DataSpec, EvalSpec, RunSpec, canonical
from erlib.memory import Room
from erlib.metrics.fresh import extracted
from erlib.models import Classifier, load_classifier
from erlib.provenance import measured
from erlib.training.evaluations import Evaluation, kind
from erlib.training.failures import (
    FAILED,
    LastStep,
    RestsOnFailure,
    record_failure,
    sealing_failures,
)
from erlib.training.identity import eval_hash, run_hash, scoring
from erlib.training.loop import train
from erlib.training.progress import progress_bar
from erlib.training.rows import content_of, rows_of, size_of
from erlib.training.store import Sealed, Store
from erlib.training.students import answers, explanations, with_lessons
from erlib.training.workers import one_thread

CHUNK = 256  # texts of an evaluation between two points where it can be taken up again
Report = Callable[[int, float | None, str], None]


def origins(spec: RunSpec) -> list[RunSpec]:
    """The runs that must be there first: its start, its teacher, whose rationales it reads."""
    extract, taught = spec.data.extract, spec.data.taught
    rests_on = (spec.start, extract and extract.run, taught and taught.run)
    return [run for run in rests_on if run]


def with_origins(specs: Sequence[RunSpec]) -> list[RunSpec]:
    """These runs, each after those that it rests on."""
    found: dict[RunSpec, None] = {}
    for spec in specs:
        found |= dict.fromkeys([*with_origins(origins(spec)), spec])
    return list(found)


def run_of(spec: EvalSpec) -> RunSpec:
    """The run that is measured."""
    if spec.run is None:
        raise ValueError("this EvalSpec names no run; only RunSpec.each_epoch may leave it out")
    return spec.run


def steps_of(spec: RunSpec) -> int:
    """Optimiser steps of a run that uses all its epochs."""
    texts = size_of(spec.data, "train", spec.data.train_rows)
    return ceil(texts / spec.optimiser.batch_size) * spec.optimiser.epochs


def make_run(
    store: Store, spec: RunSpec, device: str, report: Report, *, model: bool = False
) -> Sealed:
    """The run's result from the store, trained first if it is not there.

    `report` is told steps as they are done: how many, the loss (or None), the run. `model`: trained
    again if its model was dropped; without, all else that it left is enough.
    """
    name, steps = run_hash(spec), steps_of(spec)
    if (found := store.get("runs", name)) and not (model and found.dropped):
        report(steps, None, name)
        return found
    rows = partial(resolve_rows, store, device)
    last = LastStep()

    def on_step(terms: Mapping[str, float] | None, count: int) -> None:
        last.step, last.terms = last.step + count, terms
        report(count, terms["loss"] if terms else None, name)

    def work(folder: Path) -> str:
        (folder / "spec.json").write_text(canonical(spec) + "\n", encoding="utf-8")
        for origin in origins(spec):  # it fails with those that it rests on
            finished(store, origin, device, model=origin == spec.start)
        with one_thread(device), measured(folder, device) as facts:
            facts["data"] = {
                split: content_of(spec.data, split, rows)
                for split, rows in (("train", spec.data.train_rows), ("dev", spec.data.dev_rows))
            }
            facts["precision"] = spec.optimiser.precision
            facts["resumed"] = any(folder.glob("state-*"))
            start = finished(store, spec.start, device).path if spec.start else None
            room = Room()
            status = train(spec, folder, device, on_step, start, rows, room)
            if room.at_once is not None:
                facts["texts_at_once"] = room.at_once
            return status

    sealed = store.make("runs", name, sealing_failures(work, last))
    if model and sealed.dropped:
        sealed = store.restore("runs", name, work, lambda: _forget_measurements(store, spec))
    report(max(0, steps - last.step), None, name)  # early stopping, or another process did it
    return sealed


def _forget_measurements(store: Store, spec: RunSpec) -> None:
    """Remove the evaluations of a run, but for the one that is being made."""
    described = json.loads(canonical(spec))
    every = store.sealed("evals")
    store.remove(sealed for sealed in every if sealed.read("spec.json").get("run") == described)


def finished(store: Store, spec: RunSpec, device: str, *, model: bool = True) -> Sealed:
    """The run, by default with its model, trained first if it is not there."""
    sealed = store.get("runs", run_hash(spec))
    if sealed is None or (model and sealed.dropped):
        with progress_bar("training", steps_of(spec), "step") as bar:
            sealed = make_run(store, spec, device, lambda n, *_: bar.update(n), model=model)
    if sealed.status in ("lost", FAILED):
        raise RestsOnFailure(sealed)
    return sealed


def make_evaluation(store: Store, spec: EvalSpec, device: str, *, table: bool = False) -> Sealed:
    """The evaluation's result from the store, measured first if it is not there.

    `table`: again if an archive brought it without its table.
    """
    name, this_kind, run_spec = eval_hash(spec), kind(spec.kind), run_of(spec)
    found = store.get("evals", name)
    if found and not (table and found.dropped):
        return found

    def work(folder: Path) -> str:
        (folder / "spec.json").write_text(canonical(spec) + "\n", encoding="utf-8")
        used, origin = None, {}
        if this_kind.uses:
            source = replace(spec, kind=this_kind.uses)
            used = table_of(store, source, device)
            origin = {"made_from": eval_hash(source)}
        rows = resolve_rows(store, device, spec.data, spec.split, spec.rows)
        with one_thread(device), measured(folder, device) as facts:
            facts |= origin
            parts = []
            for start in range(0, len(rows), CHUNK):
                part = folder / f"part-{start}.parquet"
                if not part.exists():
                    chosen = range(start, min(start + CHUNK, len(rows)))
                    table = this_kind.per_text(
                        Evaluation(
                            spec,
                            rows.select(chosen),
                            partial(_trained, store, run_spec, device),
                            None if used is None else used.iloc[chosen.start : chosen.stop],
                            device,
                        )
                    )
                    table.to_parquet(part.with_suffix(".tmp"), index=False)
                    part.with_suffix(".tmp").rename(part)
                parts.append(part)
            table = pd.concat([pd.read_parquet(p) for p in parts], ignore_index=True)
        table.to_parquet(folder / "per_text.parquet", index=False)
        summary = this_kind.summarise(table)
        (folder / "summary.json").write_text(
            json.dumps(summary, indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )
        for part in parts:
            part.unlink()
        return "done"

    if found:
        return store.restore("evals", name, work)
    return store.make("evals", name, sealing_failures(work))


def _trained(store: Store, spec: RunSpec, device: str) -> Classifier:
    return _load(finished(store, spec, device).path, device)


@lru_cache(maxsize=1)
def _load(path: Path, device: str) -> Classifier:
    return load_classifier(str(path)).to(device).eval()


def table_of(store: Store, spec: EvalSpec, device: str) -> pd.DataFrame:
    """The table of an evaluation, one row (or several) per text; measured first if missing."""
    sealed = make_evaluation(store, spec, device, table=True)
    if sealed.status == FAILED:
        raise RestsOnFailure(sealed)
    return pd.read_parquet(store.opened(sealed, "per_text.parquet"))


def resolve_rows(
    store: Store, device: str, data: DataSpec, split: str, rows: int | None
) -> Dataset:
    """The rows that a description means: the texts, the rationales that a run finds in them, or
    the texts with what a teacher says of them.

    The run is trained and the words are scored first where the store does not have them; all
    shapes and shares of one run's rationales come from the same scores.
    """
    texts, extract = rows_of(data, split, rows), data.extract
    if data.taught is not None:
        return _with_lessons(store, device, data, split, texts)
    if extract is None:
        return texts
    scores = table_of(store, scoring(extract, data, split, rows), device)["scores"]
    return extracted(
        texts, list(scores), percent=extract.percent, extractor=extract.shape, order=extract.order
    )


def _with_lessons(store: Store, device: str, data: DataSpec, split: str, texts: Dataset) -> Dataset:
    """A student's texts with what its teacher says of them, asked first where that is missing."""
    teaching = data.taught
    assert teaching is not None
    needed = [answers(teaching, data, split, len(texts))]
    if split == "train" and teaching.method:
        needed.append(explanations(teaching, data, len(texts)))
    tables = [table_of(store, spec, device) for spec in needed]
    return with_lessons(texts, tables[0], tables[1] if len(tables) > 1 else None)


def fail(store: Store, kind: str, name: str, spec: Any, error: Exception) -> Sealed:
    """The result sealed as failed, for a reason that nobody could raise where the work was."""

    def work(folder: Path) -> str:
        (folder / "spec.json").write_text(canonical(spec) + "\n", encoding="utf-8")
        return record_failure(folder, error)

    return store.make(kind, name, work)
