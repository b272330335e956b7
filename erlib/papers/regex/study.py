"""What did the grid measure, cell by cell?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np
import pandas as pd

from erlib.config import EvalSpec, RunSpec
from erlib.metrics.faithfulness import aopc
from erlib.models import Classifier, load_classifier
from erlib.papers.holes import failed
from erlib.papers.trained import deciding, untrained_models
from erlib.parameters import Settings
from erlib.provenance import default_device
from erlib.training.evaluating import per_text
from erlib.training.runs import trained_folder
from erlib.training.stages import Results

METRICS = {
    "norm_suff": "normalised_sufficiency",
    "norm_comp": "normalised_comprehensiveness",
}
WORDS = {"norm_suff": "sufficiency", "norm_comp": "comprehensiveness"}
Key = TypeVar("Key")


class Study:
    """The grid's results, found by what was asked for."""

    def __init__(self, settings: Settings, results: Results) -> None:
        self.settings = settings
        tables = [results["measurements"], results["rationales"]]
        self.rows: dict[EvalSpec, dict] = {
            row["spec"]: row for table in tables for row in table.to_dict("records")
        }
        self.untrained = not_trained(results)
        self.holes = failed(tables)

    def has(self, *specs: EvalSpec) -> bool:
        """Is there a number of all of these?"""
        return self.holes.isdisjoint(specs)

    def is_trained(self, spec: EvalSpec) -> bool:
        """Has the measured model learnt its task?"""
        return spec.run not in self.untrained

    def deciding(self, measured: Mapping[Key, Iterable[EvalSpec]]) -> list[Key]:
        """The seeds, or pairs of models, that decide (see `trained.deciding`), by their specs."""
        known = {key: each for key, s in measured.items() if self.has(*(each := list(s)))}
        return deciding({key: all(map(self.is_trained, s)) for key, s in known.items()})

    def value(self, spec: EvalSpec, name: str) -> float:
        """One number of an evaluation's summary; NaN where it failed."""
        return float(self.rows[spec].get(name, np.nan))

    def texts(self, spec: EvalSpec) -> pd.DataFrame:
        """The evaluation's own table."""
        return per_text(spec, store=self.settings.store, device=self.settings.device)

    def aopc(self, spec: EvalSpec, metric: str) -> pd.Series:
        """Σ over bins / (bins + 1) of one of `METRICS`, by the text's id."""
        return aopc(self.texts(spec), METRICS[metric]).droplevel("method")


def not_trained(results: Results) -> set[RunSpec]:
    """The models of the grid from which nothing follows."""
    return untrained_models(pd.concat([results["runs"], results["classifiers"]]))


def trained(settings: Settings, spec: RunSpec) -> Classifier:
    """The model of a run that the grid has trained."""
    path = trained_folder(spec, store=settings.store, device=settings.device)
    return load_classifier(str(path)).to(settings.device or default_device())
