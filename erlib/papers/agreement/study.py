"""How are the results of the grid read? One object that tables, figures and claims ask.

A run of the paper profile has a quarter of a million agreements; each is read once and kept as
means by pair and epoch, and by text in one epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import torch

from erlib.attributions import equal_by_construction
from erlib.config import EvalSpec, RunSpec
from erlib.metrics.agreement import pair_means
from erlib.metrics.cartography import cartography, nearest_distance
from erlib.papers.agreement.systems import (
    AUDITED,
    System,
    Task,
    chosen_weight,
    core_tasks,
    curvature_spec,
    dropout_spec,
    final_runs,
    last_epoch,
    tasks,
)
from erlib.papers.holes import failed
from erlib.papers.trained import untrained_models
from erlib.parameters import Settings
from erlib.training.evaluating import per_epoch, per_text
from erlib.training.identity import run_hash
from erlib.training.stages import Results
from erlib.training.store import open_store

NAMES = {
    "deeplift": "DeepLIFT",
    "deepshap": "D-SHAP",
    "gradshap": "G-SHAP",
    "integrated_gradients": "Int-Grad",
}
(SAME,) = (  # one function, while nothing is drawn at random
    f"{NAMES[a]} vs {NAMES[b]}"
    for a, b in combinations(NAMES, 2)
    if equal_by_construction((a, "agreement"), (b, "agreement"))
)
METRICS = {"kendall_tau": "kendall", "pearson_r": "pearson"}  # the paper's column → ours


@dataclass(frozen=True)
class Study:
    """A finished grid; with `only_trained` as if the runs that are not trained were not there."""

    settings: Settings
    results: Results
    only_trained: bool = False

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row per run that tables read: model, set, variant, seed, spec, kept epoch, …

        `trained`: has its kept model learnt the task (`papers.trained.RULE`)?
        """
        found = {
            row["spec"]: row
            for name, table in self.results.items()
            if name != "measurements"
            for row in table.to_dict("records")
        }
        weak = untrained_models(pd.DataFrame(found.values()))
        rows = []
        for system, spec in final_runs(self.settings, self.results):
            row = found[spec]
            if spec in self.holes:
                continue
            rows.append(
                {
                    "model": system.model,
                    "set": system.task.paper,
                    "variant": system.variant,
                    "seed": spec.seed,
                    "spec": spec,
                    "kept": int(row["best_epoch"]),
                    "dev_f1": row["dev_f1_binary"],
                    "margin": row["dev_accuracy"] - row["dev_majority"],
                    "trained": spec not in weak,
                }
            )
        table = pd.DataFrame(rows)
        return table[table["trained"]] if self.only_trained else table

    @cached_property
    def holes(self) -> set[RunSpec | None]:
        """The runs that failed, or of which a measurement did."""
        return {
            spec.run if isinstance(spec, EvalSpec) else spec
            for spec in failed(self.results.values())
        }

    @cached_property
    def of_trained(self) -> Study:
        """The part of this study that something follows from."""
        return replace(self, only_trained=True)

    @cached_property
    def main(self) -> pd.DataFrame:
        """`runs` without the audited variants."""
        return self.runs[~self.runs["variant"].isin(AUDITED)]

    def compared(self, model: str) -> pd.DataFrame:
        """A model's runs of Base and Tying, which Tables 4, 5 and 11 compare, where both are."""
        wanted = (self.main["model"] == model) & self.main["variant"].isin(["Base", "Tying"])
        runs = self.main[wanted]
        return runs[runs.groupby(["set", "seed"])["variant"].transform("nunique") == 2]

    @cached_property
    def all_runs(self) -> list[str]:
        """The hashes of all runs of all stages, those of the λ search included."""
        tables = [t for name, t in self.results.items() if name != "measurements" and len(t)]
        return list(dict.fromkeys(run for table in tables for run in table["run"]))

    @cached_property
    def tasks(self) -> list[Task]:
        """The four tasks, in the paper's order."""
        return tasks(self.settings)

    def core(self, model: str) -> list[str]:
        """The sets on which a model has every seed: claims rest on them."""
        return [task.paper for task in core_tasks(self.settings, model)]

    def runs_of(self, model: str, paper: str, variant: str) -> dict[int, RunSpec]:
        """seed → run of one cell."""
        return self._cells.get((model, paper, variant), {})

    def first(self, model: str, paper: str, variant: str) -> RunSpec | None:
        """The run of the first seed that did not fail."""
        return next(iter(self.runs_of(model, paper, variant).values()), None)

    @cached_property
    def _cells(self) -> dict[tuple[str, str, str], dict[int, RunSpec]]:
        groups = self.runs.groupby(["model", "set", "variant"], sort=False)
        return {cell: dict(zip(r["seed"], r["spec"], strict=True)) for cell, r in groups}

    def paired(self, model: str, paper: str, *variants: str) -> list[tuple[RunSpec, ...]]:
        """The runs of these variants, one tuple per seed that all of them have."""
        found = [self.runs_of(model, paper, v) for v in variants]
        return [
            tuple(f[seed] for f in found) for seed in sorted(set.intersection(*map(set, found)))
        ]

    @cached_property
    def kept(self) -> dict[RunSpec, int]:
        """run → the epoch of its kept model."""
        return dict(zip(self.runs["spec"], self.runs["kept"], strict=True))

    @cached_property
    def trained(self) -> dict[RunSpec, bool]:
        """run → has its kept model learnt the task?"""
        return dict(zip(self.runs["spec"], self.runs["trained"], strict=True))

    def all_trained(self, model: str, paper: str, *variants: str) -> str:
        """ "yes" or "no": are the runs that a test of these variants compares all trained?"""
        compared = [spec for pair in self.paired(model, paper, *variants) for spec in pair]
        return "yes" if all(self.trained[spec] for spec in compared) else "no"

    def weight(self, system: System) -> float:
        """The λ that a cell was trained with."""
        return chosen_weight(self.settings, self.results, system)

    def pairs_by_epoch(self, spec: RunSpec) -> pd.DataFrame:
        """One row per epoch and pair of methods: mean τ and r, texts, and texts skipped."""
        return _pairs_by_epoch(spec, self.settings.store)

    def pairs(self, spec: RunSpec) -> pd.DataFrame:
        """Of the last epoch (index: pair)."""
        table = self.pairs_by_epoch(spec)
        return table[table["epoch"] == last_epoch(spec)].set_index("pair")

    def by_text(self, spec: RunSpec, epoch: int | None = None) -> pd.DataFrame:
        """One row per text and pair of methods, in the last epoch unless given."""
        return _by_text(spec, self.settings.store, epoch or last_epoch(spec))

    def text_means(self, spec: RunSpec, epoch: int | None = None) -> pd.DataFrame:
        """τ and r of each text (index: id), the mean over pairs, in the last epoch unless given."""
        table = self.by_text(spec, epoch)
        return table.groupby("id", sort=False)[["kendall", "pearson"]].mean()

    def with_dropout(self, spec: RunSpec) -> pd.DataFrame:
        """One row per text and pair of methods of the kept model, explained with dropout on."""
        return _named(_read(dropout_spec(spec), self.settings.store))

    def answers(self, spec: RunSpec) -> pd.DataFrame:
        """Predictions on test texts after every epoch."""
        return _epochs(spec, spec.each_epoch[0], self.settings.store)

    def map_of(self, spec: RunSpec, *, dropout: bool = False) -> pd.DataFrame:
        """Cartography of the run's test texts (index: id)."""
        each = spec.each_epoch[2] if dropout else spec.each_epoch[0]
        return _map(spec, each, self.settings.store)

    def bends(self, spec: RunSpec, model: str) -> pd.DataFrame:
        """Grad norm, its cheaper relative `sum` and min dist of the kept model (index: id)."""
        return _bends(curvature_spec(self.settings, spec, model), self.settings.store)

    def minutes(self, spec: RunSpec) -> float:
        """How long a run took: training, and explaining the test texts after every epoch."""
        sealed = open_store(self.settings.store).get("runs", run_hash(spec))
        assert sealed is not None  # `carry_out` has made it
        return sealed.read("provenance.json")["seconds"] / 60


@lru_cache(maxsize=512)
def _read(spec: EvalSpec, store: str | None) -> pd.DataFrame:
    return per_text(spec, store=store)


@lru_cache(maxsize=512)
def _epochs(spec: RunSpec, each: EvalSpec, store: str | None) -> pd.DataFrame:
    return per_epoch(spec, each, store=store)


@lru_cache(maxsize=512)
def _pairs_by_epoch(spec: RunSpec, store: str | None) -> pd.DataFrame:
    table = per_epoch(spec, spec.each_epoch[1], store=store)
    means = [
        pair_means(rows).reset_index().assign(epoch=epoch) for epoch, rows in table.groupby("epoch")
    ]
    return _named(pd.concat(means, ignore_index=True))


@lru_cache(maxsize=1024)
def _by_text(spec: RunSpec, store: str | None, epoch: int) -> pd.DataFrame:
    table = per_epoch(spec, spec.each_epoch[1], store=store)
    return _named(table[table["epoch"] == epoch].reset_index(drop=True))


@lru_cache(maxsize=512)
def _map(spec: RunSpec, each: EvalSpec, store: str | None) -> pd.DataFrame:
    table = _epochs(spec, each, store)
    gold = np.where(table["label"] == 1, table["p1"], table["p0"])
    right = table["label"] == table["predicted"]
    table = table.assign(p_gold=gold, right=right)
    p = table.pivot(index="epoch", columns="id", values="p_gold")
    correct = table.pivot(index="epoch", columns="id", values="right").astype(bool)
    return cartography(p.to_numpy(), correct.to_numpy(), ids=list(p.columns)).set_index("id")


@lru_cache(maxsize=512)
def _bends(spec: EvalSpec, store: str | None) -> pd.DataFrame:
    table = per_text(spec, store=store)
    states = torch.tensor(np.stack(table["state"].to_numpy()))
    table = table.assign(min_dist=nearest_distance(states))
    return table.set_index("id")[["norm", "sum", "min_dist"]]


def labels(run: Any) -> dict[str, Any]:
    """What a row of a table over texts says of its run (a row of `Study.runs`)."""
    return {name: getattr(run, name) for name in ("set", "variant", "seed", "trained")}


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """With `pair` as the paper writes it."""
    names = [table[side].map(NAMES) for side in ("method_a", "method_b")]
    return table.assign(pair=names[0] + " vs " + names[1])
