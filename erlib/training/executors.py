"""How are runs and evaluations carried out? `run` trains what is missing, `evaluate` measures it.

The store's locks make both safe to call from several processes at once; an executor only decides
where the work of one description happens.
"""

from __future__ import annotations

import json
import os
import resource
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, lru_cache, partial
from math import ceil
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from datasets import Dataset

from erlib.attributions.decompx import decompositions_remembered
from erlib.config import (
    DataSpec,
    EvalSpec,
    RunSpec,
    canonical,
    check_executor,
    run_spec_from_dict,
    store_root,
)
from erlib.data.known import results_only
from erlib.metrics.fresh import extracted
from erlib.models import Classifier, load_classifier
from erlib.models.precision import refuse, warn_if_slow
from erlib.provenance import environment
from erlib.training.checkpoints import VANISHED
from erlib.training.evaluations import Evaluation, kind
from erlib.training.failures import (
    FAILED,
    LastStep,
    RestsOnFailure,
    WorkerKilled,
    record_failure,
    sealing_failures,
)
from erlib.training.identity import content_of, eval_hash, rows_of, run_hash, scoring, size_of
from erlib.training.listing import eval_label, failed_words, remarks, run_label, vanished_words
from erlib.training.loop import train
from erlib.training.progress import progress_bar
from erlib.training.store import Results, Sealed, Store
from erlib.training.students import answers, explanations, with_lessons
from erlib.training.workers import one_thread, side_by_side, worker_count

REPLACEMENTS = 2  # seeds that may follow a lost one
CHUNK = 256  # texts of an evaluation between two points where it can be taken up again
StorePath = str | os.PathLike[str] | None
Report = Callable[[int, float | None, str], None]


def run(
    specs: Sequence[RunSpec],
    *,
    executor: str = "local",
    store: StorePath = None,
    device: str | None = None,
) -> pd.DataFrame:
    """Train what is missing; one row per run with its `status`, lost ones and replacements too.

    A lost run (it never met its checkpoint rule) is followed by the next seed that none of `specs`
    uses, at most twice for each wanted seed. A failed one (see `erlib.training.failures`) is not
    replaced: its row has no scores, and the others are trained.
    """
    check_executor(executor)
    kept, device = open_store(store), device or default_device()
    wanted = list(dict.fromkeys(specs))
    taken: dict[RunSpec, set[int]] = {}  # seeds in use, by what is otherwise the same run
    for spec in wanted:
        taken.setdefault(_seedless(spec), set()).add(spec.seed)
    rows: dict[RunSpec, list[dict[str, Any]]] = {spec: [] for spec in wanted}
    tried = {spec: spec for spec in wanted}  # what is trained now in the place of each
    with progress_bar("training", sum(steps_of(s) for s in with_origins(wanted)), "step") as bar:
        for attempt in range(1 + REPLACEMENTS):
            for first, sealed in zip(
                tried, _train_all(kept, list(tried.values()), device, bar), strict=True
            ):
                replaces = first.seed if attempt else None
                rows[first].append(run_row(sealed, tried[first], replaces))
            lost = [first for first in tried if rows[first][-1]["status"] == "lost"]
            tried = {}
            for first in lost if attempt < REPLACEMENTS else ():
                seeds = taken[_seedless(first)]
                seeds.add(max(seeds) + 1)
                tried[first] = first.with_seed(max(seeds))
                bar.total += steps_of(first)
    return pd.DataFrame([row for first in wanted for row in rows[first]])


def _seedless(spec: RunSpec) -> RunSpec:
    """What a run has in common with its repetitions: each begins from its own seed's run."""
    return replace(spec, seed=0, start=None)


def _train_all(store: Store, specs: list[RunSpec], device: str, bar: Any) -> list[Sealed]:
    """The results of all, trained side by side where they are missing; each after those that it
    rests on, which are trained too if they are missing and it is."""

    def show(count: int, loss: float | None, name: str) -> None:
        shown = {} if loss is None else {"loss": f"{loss:.3f}"}
        bar.set_postfix(**shown, run=name[:6], refresh=False)
        bar.update(count)

    def is_missing(spec: RunSpec) -> bool:
        return store.get("runs", run_hash(spec)) is None

    needed = sorted(with_origins(list(filter(is_missing, specs))), key=_depth)
    missing = list(filter(is_missing, needed))
    for precision in {spec.optimiser.precision for spec in missing}:
        refuse(precision, device)
        warn_if_slow(precision, device)
    place = {spec: i for i, spec in enumerate(missing)}
    made = side_by_side(
        lambda spec, report: make_run(store, spec, device, report),
        missing,
        worker_count(device),
        show,
        after=[{place[o] for o in origins(spec) if o in place} for spec in missing],
        killed=lambda spec: fail(store, "runs", run_hash(spec), spec, WorkerKilled()),
    )
    tell_remarks(made)
    for spec in with_origins(specs):
        if spec not in place:
            show(steps_of(spec), None, run_hash(spec))
    found = dict(zip(missing, made, strict=True))
    return [found.get(s) or make_run(store, s, device, lambda *_: None) for s in specs]


def tell_remarks(made: Iterable[Sealed]) -> None:
    """Warn the caller's caller of what there is to know of these runs."""
    for sealed in made:
        for said in remarks(sealed):
            warnings.warn(f"{run_label(sealed)}: {said}", stacklevel=4)


def with_origins(specs: Sequence[RunSpec]) -> list[RunSpec]:
    """These runs, each after those that it rests on."""
    found: dict[RunSpec, None] = {}
    for spec in specs:
        found |= dict.fromkeys([*with_origins(origins(spec)), spec])
    return list(found)


def _depth(spec: RunSpec) -> int:
    return 1 + max(map(_depth, origins(spec)), default=0)


def origins(spec: RunSpec) -> list[RunSpec]:
    """The runs that must be there first: its start, its teacher, whose rationales it reads."""
    extract, taught = spec.data.extract, spec.data.taught
    rests_on = (spec.start, extract and extract.run, taught and taught.run)
    return [run for run in rests_on if run]


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
            _finished(store, origin, device, model=origin == spec.start)
        with one_thread(device), measured(folder, device) as facts:
            facts["data"] = {
                split: content_of(spec.data, split, rows)
                for split, rows in (("train", spec.data.train_rows), ("dev", spec.data.dev_rows))
            }
            facts["precision"] = spec.optimiser.precision
            facts["resumed"] = any(folder.glob("state-*"))
            start = _finished(store, spec.start, device).path if spec.start else None
            return train(spec, folder, device, on_step, start, rows)

    sealed = store.make("runs", name, sealing_failures(work, last))
    if model and sealed.dropped:
        sealed = store.restore("runs", name, work)
    report(max(0, steps - last.step), None, name)  # early stopping, or another process did it
    return sealed


def fail(store: Store, kind: str, name: str, spec: Any, error: Exception) -> Sealed:
    """The result sealed as failed, for a reason that nobody could raise where the work was."""

    def work(folder: Path) -> str:
        (folder / "spec.json").write_text(canonical(spec) + "\n", encoding="utf-8")
        return record_failure(folder, error)

    return store.make(kind, name, work)


def run_row(sealed: Sealed, spec: RunSpec, replaces: int | None) -> dict[str, Any]:
    """What `run` says of one run: identity, status, its best epoch's scores, and over all epochs
    the lowest of each."""
    metrics = sealed.read("metrics.json")
    best = metrics.get("best") or {}
    return {
        "run": sealed.name,
        "status": sealed.status,
        "seed": spec.seed,
        "replaces": replaces,
        "spec": spec,
        "best_epoch": metrics.get("best_epoch"),
        **{name: value for name, value in best.items() if name not in ("epoch", VANISHED)},
        VANISHED: vanished_words(sealed),
        **{f"lowest_{n}": value for n, value in metrics.get("lowest", {}).items() if n != "epoch"},
    }


def steps_of(spec: RunSpec) -> int:
    """Optimiser steps of a run that uses all its epochs."""
    texts = size_of(spec.data, "train", spec.data.train_rows)
    return ceil(texts / spec.optimiser.batch_size) * spec.optimiser.epochs


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
    return _table(open_store(store), spec, device or default_device())


def _table(store: Store, spec: EvalSpec, device: str) -> pd.DataFrame:
    sealed = make_evaluation(store, spec, device, table=True)
    if sealed.status == FAILED:
        raise RestsOnFailure(sealed)
    return pd.read_parquet(store.opened(sealed, "per_text.parquet"))


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
            used = _table(store, source, device)
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
    scores = _table(store, scoring(extract, data, split, rows), device)["scores"]
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
    tables = [_table(store, spec, device) for spec in needed]
    return with_lessons(texts, tables[0], tables[1] if len(tables) > 1 else None)


def run_of(spec: EvalSpec) -> RunSpec:
    """The run that is measured."""
    if spec.run is None:
        raise ValueError("this EvalSpec names no run; only RunSpec.each_epoch may leave it out")
    return spec.run


def trained_folder(spec: RunSpec, *, store: StorePath = None, device: str | None = None) -> Path:
    """The folder of a run with its model in it: trained first, or again if that was dropped."""
    return _finished(open_store(store), spec, device or default_device()).path


def restored_folder(prefix: str, *, store: StorePath = None) -> Path:
    """The folder of the run whose hash begins so, with its model, which is kept from now on."""
    opened = open_store(store)
    sealed = opened.find("runs", prefix)
    spec = run_spec_from_dict(sealed.read("spec.json"))
    if run_hash(spec) != sealed.name:
        raise ValueError(
            f"run {sealed.name} was made by another version of erlib or from other data; what it "
            f"describes is now run {run_hash(spec)}"
        )
    folder = trained_folder(spec, store=store)
    opened.keep_model(sealed.name)
    return folder


def _trained(store: Store, spec: RunSpec, device: str) -> Classifier:
    return _load(_finished(store, spec, device).path, device)


def _finished(store: Store, spec: RunSpec, device: str, *, model: bool = True) -> Sealed:
    """The run, by default with its model, trained first if it is not there."""
    sealed = store.get("runs", run_hash(spec))
    if sealed is None or (model and sealed.dropped):
        with progress_bar("training", steps_of(spec), "step") as bar:
            sealed = make_run(store, spec, device, lambda n, *_: bar.update(n), model=model)
    if sealed.status in ("lost", FAILED):
        raise RestsOnFailure(sealed)
    return sealed


@lru_cache(maxsize=1)
def _load(path: Path, device: str) -> Classifier:
    return load_classifier(str(path)).to(device).eval()


@contextmanager
def measured(folder: Path, device: str) -> Iterator[dict[str, Any]]:
    """Write `provenance.json` when the work is done; the caller may add facts of its own."""
    started = time.monotonic()
    facts: dict[str, Any] = {}
    yield facts
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if device.startswith("cuda"):
        facts["peak_device_bytes"] = torch.cuda.max_memory_allocated()
    facts |= {
        **_environment(),
        "device": device,
        "seconds": round(time.monotonic() - started, 1),
        "peak_process_bytes": peak,
        "spec": json.loads((folder / "spec.json").read_text("utf-8")),
    }
    text = json.dumps(facts, indent=1, sort_keys=True) + "\n"
    (folder / "provenance.json").write_text(text, encoding="utf-8")


@cache
def _environment() -> dict[str, Any]:
    """Asked once per process: it runs Git, and a grid has hundreds of evaluations."""
    return environment()


def open_store(store: StorePath = None) -> Store:
    """The store at this path (see `config.store_root` for the default), one object per path."""
    return _store(store_root(store).resolve(), Results if results_only() else Store)


@lru_cache(maxsize=8)
def _store(root: Path, access: type[Store]) -> Store:
    return access(root)


def default_device() -> str:
    """CUDA where there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"
