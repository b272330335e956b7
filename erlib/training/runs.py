"""How are many runs trained? `run` makes what is missing, side by side, and replaces lost ones."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from erlib.config import RunSpec, check_executor, listed, run_spec_from_dict
from erlib.models.precision import refuse, warn_if_slow
from erlib.provenance import default_device
from erlib.training.failures import WorkerKilled
from erlib.training.identity import run_hash
from erlib.training.listing import remarks, run_label, vanished_words
from erlib.training.making import fail, finished, make_run, origins, steps_of, with_origins
from erlib.training.progress import progress_bar
from erlib.training.store import VANISHED, Sealed, Store, StorePath, open_store
from erlib.training.workers import side_by_side, worker_count

REPLACEMENTS = 2  # seeds that may follow a lost one


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
    wanted = list(dict.fromkeys(listed(specs, RunSpec, "erlib.run")))
    kept, device = open_store(store), device or default_device()
    taken: dict[RunSpec, set[int]] = {}  # seeds in use, by what is otherwise the same run
    for spec in wanted:
        taken.setdefault(seedless(spec), set()).add(spec.seed)
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
                seeds = taken[seedless(first)]
                seeds.add(max(seeds) + 1)
                tried[first] = first.with_seed(max(seeds))
                bar.total += steps_of(first)
    return pd.DataFrame([row for first in wanted for row in rows[first]])


def seedless(spec: RunSpec) -> RunSpec:
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


def _depth(spec: RunSpec) -> int:
    return 1 + max(map(_depth, origins(spec)), default=0)


def tell_remarks(made: Iterable[Sealed]) -> None:
    """Warn the caller's caller of what there is to know of these runs."""
    for sealed in made:
        for said in remarks(sealed):
            warnings.warn(f"{run_label(sealed)}: {said}", stacklevel=4)


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


def trained_folder(spec: RunSpec, *, store: StorePath = None, device: str | None = None) -> Path:
    """The folder of a run with its model in it: trained first, or again if that was dropped."""
    return finished(open_store(store), spec, device or default_device()).path


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
