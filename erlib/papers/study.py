"""What did a paper's grid measure? One object that tables, figures, facts and verdicts ask."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import pandas as pd

from erlib.catalogue import Paper
from erlib.config import EvalSpec, RunSpec
from erlib.models import Classifier, load_classifier
from erlib.papers.cells import Cell, Read, Reading, Spec, run_behind
from erlib.papers.holes import failed
from erlib.papers.trained import judged_by, untrained_models
from erlib.parameters import Settings
from erlib.provenance import default_device
from erlib.reports.cells import Cell as Place
from erlib.training.evaluating import per_epoch, per_text
from erlib.training.failures import FAILED, RestsOnFailure
from erlib.training.identity import run_hash
from erlib.training.runs import trained_folder
from erlib.training.stages import Results
from erlib.training.store import open_store

Given = ParamSpec("Given")
Made = TypeVar("Made")


class Study:
    """A finished grid: its results by description, and its cells."""

    def __init__(self, paper: Paper, settings: Settings, results: Results) -> None:
        self.paper, self.settings, self.results = paper, settings, results
        self.holes: set[Spec] = failed(results.values())
        self._made: dict[Hashable, Any] = {}
        self.rows: dict[Spec, dict[str, Any]] = {
            row["spec"]: row for table in results.values() for row in table.to_dict("records")
        }

    @cached_property
    def lacking(self) -> set[Spec]:
        """What the grid has and the results, where only these are read, do not have yet."""
        gone = set(open_store(self.settings.store).lacking())
        return {
            spec
            for spec, row in self.rows.items()
            if (f"evals/{row['eval']}" if "eval" in row else f"runs/{row['run']}") in gone
        }

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The rows of `erlib.run`, of all stages, each once."""
        tables = [t for t in self.results.values() if "replaces" in t]
        found = pd.concat(tables).drop_duplicates("run", ignore_index=True)
        return found if "dev_chance_p" in found else found.assign(dev_chance_p=np.nan)

    def ended(self, status: str) -> list[RunSpec]:
        """The runs that ended so, "lost" or "failed"; what is only lacking has not failed."""
        runs = self.runs.loc[self.runs["status"] == status, "spec"]
        return [run for run in runs if run not in self.lacking]

    @cached_property
    def untrained(self) -> set[RunSpec]:
        """The runs that are not known to have learnt their task: nothing follows from them.

        A model that is meant to know nothing (rate 0) is not one of them.
        """
        learning = [spec.optimiser.lr > 0 for spec in self.runs["spec"]]
        return untrained_models(self.runs[learning])

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every number of the paper that was measured, or that failed."""
        return tuple(self.paper.module("cells").cells(self))

    def of(self, *tables: str) -> list[Cell]:
        """The cells of these tables."""
        return [cell for cell in self.cells if cell.table in tables]

    def waits(self, cells: Iterable[Cell]) -> bool:
        """Is something that these are read from still to be measured?"""
        return not self.lacking.isdisjoint(spec for cell in cells for spec in cell.specs)

    def finished(self, *tables: str) -> list[Cell]:
        """Those of which nothing failed."""
        return [cell for cell in self.of(*tables) if self.has(*cell.specs)]

    def has(self, *specs: Spec) -> bool:
        """Is there a result of all of these?"""
        return all(spec in self.rows for spec in specs) and self.holes.isdisjoint(specs)

    def is_trained(self, *specs: Spec) -> bool:
        """Have all the models that these rest on learnt their task?"""
        runs = filter(None, map(run_behind, specs))
        return self.untrained.isdisjoint(map(judged_by, runs))

    def value(self, spec: Spec, name: str) -> float:
        """One number of a run's or evaluation's row; NaN where it failed or has none."""
        number = self.rows[spec].get(name, np.nan)
        return float("nan" if number is None else number)

    def texts(self, spec: Spec, *, keep: bool = True) -> pd.DataFrame:
        """An evaluation's own table; raises `RestsOnFailure` where it failed.

        `keep` it for other cells, unless it is large and the caller keeps what is needed of it.
        """
        assert isinstance(spec, EvalSpec)
        where = self.settings.store, self.settings.device
        return _per_text(spec, *where) if keep else _per_text.__wrapped__(spec, *where)

    def each_epoch(self, run: RunSpec, measured: EvalSpec) -> pd.DataFrame:
        """What was measured of a run after every epoch, with an `epoch` column; not kept."""
        return per_epoch(run, measured, store=self.settings.store)

    def history(self, run: RunSpec) -> pd.DataFrame:
        """What a run logged, epoch by epoch."""
        store = open_store(self.settings.store)
        sealed = store.get("runs", run_hash(run))
        if sealed is None:
            raise ValueError(f"run {run_hash(run)} has not been trained; carry out the grid first")
        if sealed.status == FAILED:
            raise RestsOnFailure(sealed)
        return pd.read_csv(store.opened(sealed, "history.csv"))

    def once(self, what: Hashable, make: Callable[[], Made]) -> Made:
        """What several cells read, made once."""
        if what not in self._made:
            self._made[what] = make()
        return self._made[what]

    def model(self, run: RunSpec, quirks: tuple[str, ...] | None = None) -> Classifier:
        """A trained model, in evaluation mode; with its own quirks or with others."""
        device = self.settings.device or default_device()
        folder = trained_folder(run, store=self.settings.store, device=device)
        return load_classifier(str(folder), quirks=quirks).to(device).eval()

    def reading(self, cell: Cell, metric: str) -> Reading | None:
        """What one metric of a cell is; None where something that it rests on failed."""
        return self._reading(cell, cell.read[metric])

    def _reading(self, cell: Cell, read: Read) -> Reading | None:
        if not self.has(*cell.specs):
            return None
        found = self.once((read, cell.specs), lambda: read(self, cell.specs))
        return replace(found, trained=found.trained and self.is_trained(*cell.specs))

    def read(self, place: Place) -> dict[int, Reading] | None:
        """By seed, what claims read at a place of the paper; None where nothing was measured, or
        not yet all that is planned: a contrast is looked at once."""
        if self.waits(self.at(place)):
            return None
        reads = [(c, {**c.read, **c.decides}.get(place.metric)) for c in self.at(place)]
        found = {cell.seed: self._reading(cell, read) for cell, read in reads if read}
        return {seed: r for seed, r in found.items() if r and np.isfinite(r.value)} or None

    def at(self, place: Place) -> Sequence[Cell]:
        """The cells of a place, one per seed or more."""
        return self._at.get((place.table, place.row, place.column), ())

    @cached_property
    def _at(self) -> Mapping[tuple[str, str, str], list[Cell]]:
        found: dict[tuple[str, str, str], list[Cell]] = {}
        for cell in self.cells:
            found.setdefault((cell.table, cell.row, cell.column), []).append(cell)
        return found

    def numbers(self, cells: Iterable[Cell]) -> pd.DataFrame:
        """One row per cell and metric: table, row, column, metric, seed, value, trained, texts (how
        many), remark. A value is NaN where its cell failed."""
        rows = []
        for cell in cells:
            for metric in cell.read:
                found = self.reading(cell, metric) or Reading(float("nan"), trained=False)
                rows.append(
                    {
                        "table": cell.table,
                        "row": cell.row,
                        "column": cell.column,
                        "metric": metric,
                        "seed": cell.seed,
                        "value": found.value,
                        "trained": found.trained,
                        "texts": 0 if found.texts is None else found.texts.index.nunique(),
                        "remark": cell.remark,
                    }
                )
        return pd.DataFrame(rows, columns=COLUMNS)

    def hashes(self, cells: Iterable[Cell]) -> list[str]:
        """The runs and evaluations that cells were read from, by their names in the store."""
        specs = dict.fromkeys(spec for cell in cells for spec in cell.specs)
        rows = [self.rows[spec] for spec in specs if spec in self.rows]
        return [row.get("eval") or row["run"] for row in rows]


COLUMNS = ("table", "row", "column", "metric", "seed", "value", "trained", "texts", "remark")


def made_once(
    make: Callable[Concatenate[Study, Given], Made],
) -> Callable[Concatenate[Study, Given], Made]:
    """For what several cells read: made once of a study and what else it is made of."""

    @wraps(make)
    def made(study: Study, *args: Given.args, **options: Given.kwargs) -> Made:
        what = (make, *args, *sorted(options.items()))
        return study.once(what, lambda: make(study, *args, **options))

    return made


def by_metric(numbers: pd.DataFrame) -> pd.DataFrame:
    """The same numbers, one row per place and seed, one column per metric."""
    keys = ["table", "row", "column", "seed", "trained"]
    rows = [
        {**dict(zip(keys, place, strict=True)), **one.set_index("metric")["value"]}
        for place, one in numbers.groupby(keys, sort=False)
    ]
    return pd.DataFrame(rows, columns=[*keys, *numbers["metric"].unique()])


@lru_cache(maxsize=4096)
def _per_text(spec: EvalSpec, store: str | None, device: str | None) -> pd.DataFrame:
    return per_text(spec, store=store, device=device)
