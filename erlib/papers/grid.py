"""In what order is what a paper's cells need trained and measured?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from erlib.config import EvalSpec, RunSpec
from erlib.papers.cells import Cell
from erlib.training.making import with_origins
from erlib.training.stages import Results, Specs, Stage, every_model, listed_in


def runs_of(cells: Iterable[Cell]) -> list[RunSpec]:
    """The runs that cells are, or are measured of, each once and after those that it rests on."""
    specs = chain.from_iterable(cell.specs for cell in cells)
    runs = [spec.run if isinstance(spec, EvalSpec) else spec for spec in specs]
    return with_origins([run for run in runs if run is not None])


def evaluations_of(cells: Iterable[Cell]) -> list[EvalSpec]:
    """The evaluations that cells are read from, each once."""
    specs = chain.from_iterable(cell.specs for cell in cells)
    return list(dict.fromkeys(spec for spec in specs if isinstance(spec, EvalSpec)))


def stage(name: str, specs: Specs, **options: object) -> Stage:
    """A stage whose descriptions are known before any result."""
    return Stage(name, lambda results: specs, len(specs), specs, **options)  # type: ignore[arg-type]


def whole_grid(
    cells: Sequence[Cell],
    *,
    more: Sequence[RunSpec] = (),
    keeps: Callable[[RunSpec], bool] = every_model,
) -> list[Stage]:
    """Runs, then measurements, where no description needs a result; `more`: runs without a cell."""
    runs, evals = with_origins([*runs_of(cells), *more]), evaluations_of(cells)
    return [stage("runs", runs, asked=listed_in(evals), keeps=keeps), stage("measurements", evals)]


def later(
    name: str, specs: Callable[[Results], Specs], expected: Specs, **options: object
) -> Stage:
    """A stage that needs results; `expected`: as many descriptions as it can have, for the plan."""
    return Stage(name, specs, len(expected), expected, guessed=True, **options)  # type: ignore[arg-type]
