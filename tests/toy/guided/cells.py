"""Every number of the paper's table, and the evaluation that it is read from."""

from __future__ import annotations

from collections.abc import Iterator

from erlib.catalogue import paper
from erlib.config import EvalSpec
from erlib.papers.cells import ACCURACY, Cell, text_mean
from erlib.papers.grid import whole_grid
from erlib.papers.guided.systems import SYSTEMS, run_spec
from erlib.papers.study import Study
from erlib.parameters import Settings
from erlib.training.stages import Stage

AUC = text_mean("auc", 100)


def cells(study: Study) -> Iterator[Cell]:
    """Table 1."""
    for system in SYSTEMS:
        for seed in study.settings.seeds:
            run = run_spec(study.settings, system, seed)
            answers = EvalSpec(run, run.data, "test", "predictions")
            agrees = EvalSpec(run, run.data, "test", "plausibility", method="attention")
            yield Cell("table1", system, "Task", seed, (answers,), {"accuracy": ACCURACY})
            yield Cell("table1", system, "Rationales", seed, (agrees,), {"auc": AUC})


def grid(settings: Settings) -> list[Stage]:
    """Train the systems and measure them."""
    return whole_grid(Study(paper("guided"), settings, {}).cells)
