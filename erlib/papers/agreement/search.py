"""Which λ has a regularised model?

The strongest one whose validation F1 is within three points of Base: the grid is tried from its
strong end, one stage per λ, until one is close enough. Tasks that are not core to a profile take
the λ of the core task.
"""

from __future__ import annotations

from dataclasses import replace

from erlib.config import RunSpec
from erlib.papers.agreement.systems import AUDITED, VARIANTS, System, core_tasks, run_spec, systems
from erlib.parameters import Settings
from erlib.training.stages import Results

OWN_WEIGHT = ("Conicity", "Tying", "Tying, squared")  # another scale needs another λ
CLOSE = 0.03  # F1 that the regularised model may lose on validation texts


def weights(settings: Settings, system: System) -> list[float]:
    """The λ to be tried, the strongest first."""
    return sorted(settings.grid["lambdas"][system.variant], reverse=True)


def weight_source(settings: Settings, system: System) -> System:
    """The cell whose search chooses this cell's λ."""
    if system.variant not in OWN_WEIGHT:  # only the switch is to differ
        plain = System(system.model, system.task, system.variant.split(",")[0])
        return weight_source(settings, plain)
    core = core_tasks(settings, system.model)
    if system.task in core or system.variant in AUDITED:
        return system
    return System(system.model, core[0], system.variant)


def searched(settings: Settings) -> list[System]:
    """The cells that have a search of their own."""
    found = systems(settings, [*VARIANTS[1:], *AUDITED])
    return list(dict.fromkeys(weight_source(settings, s) for s in found))


def search_spec(settings: Settings, system: System, weight: float) -> RunSpec:
    """A run of the search: the first seed's, without explanations, which cost more than training.

    Where there is one λ only, nothing is searched and the run is the final one.
    """
    spec = run_spec(settings, system, settings.seeds[0], weight)
    return spec if len(weights(settings, system)) == 1 else replace(spec, each_epoch=())


def trials(settings: Settings, step: int, results: Results) -> list[RunSpec]:
    """The runs with the λ at this place of the grid, where none before it was close enough."""
    return [
        search_spec(settings, s, weights(settings, s)[step])
        for s in searched(settings)
        if step < len(weights(settings, s))
        if step == 0 or accepted(settings, results, s) is None
    ]


def tried(settings: Settings, results: Results, system: System) -> list[tuple[float, float]]:
    """(λ, validation F1) of the weights that the search has tried so far, the strongest first."""
    found = _scores(results)
    specs = {weight: search_spec(settings, system, weight) for weight in weights(settings, system)}
    return [(weight, found[spec]) for weight, spec in specs.items() if spec in found]


def base_score(settings: Settings, results: Results, system: System) -> float:
    """Validation F1 of the Base run that a search compares with."""
    base = System(system.model, system.task, "Base")
    return _scores(results)[run_spec(settings, base, settings.seeds[0])]


def accepted(settings: Settings, results: Results, system: System) -> float | None:
    """The strongest λ tried that is close enough to Base; None while there is none."""
    enough = base_score(settings, results, system) - CLOSE
    return next((w for w, f1 in tried(settings, results, system) if f1 >= enough), None)


def chosen_weight(settings: Settings, results: Results, system: System) -> float:
    """The λ of a cell; where none is close enough, the weakest of the grid. Base has none.

    The strongest while there are no results.
    """
    if system.variant == "Base":
        return 0.0
    source = weight_source(settings, system)
    grid = weights(settings, source)
    alone = len(grid) == 1 or not results
    found = grid[0] if alone else accepted(settings, results, source)
    return grid[-1] if found is None else found


def _scores(results: Results) -> dict[RunSpec, float]:
    return {
        row["spec"]: row["dev_f1_binary"]
        for table in results.values()
        if "dev_f1_binary" in table and "eval" not in table
        for row in table[["spec", "dev_f1_binary"]].to_dict("records")
    }
