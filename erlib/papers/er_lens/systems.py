"""What does "Explanation Regularisation through the Lens of Attributions" train?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from erlib.config import (
    CheckpointRule,
    DataSpec,
    ModelSpec,
    OptimiserSpec,
    RunSpec,
    Term,
    term,
    update,
)
from erlib.parameters import Settings

TECHNIQUES = {
    "ATT": "attention",
    "ATTR": "rollout",
    "IXG": "input_x_gradient",
    "ALTI": "alti",
    "DX-C": "decompx_classifier",
    "DX": "decompx",
}
GUIDES = ("ATT", "ATTR", "IXG")
GLOBAL = ("ATTR", "IXG")  # guides that look at every layer
NOTHING: Mapping[str, Any] = MappingProxyType({})
DECOMPOSITIONS = ("ALTI", "DX-C", "DX")  # which the paper could not take of long documents
AUDITED = ("Baseline", "ER+Att")  # trained once more with the embedding block applied twice


@dataclass(frozen=True)
class System:
    """How a system is trained: its kind of objective, and the technique that guides it."""

    mode: str  # "baseline", "joint", "constrained" or "explanation"
    guide: str = ""  # the Baseline has none


SYSTEMS = {
    "Baseline": System("baseline"),
    "ER+Att": System("joint", "ATT"),
    "ER+AttR": System("joint", "ATTR"),
    "ER+IxG": System("joint", "IXG"),
    "ER-C+Att": System("constrained", "ATT"),
    "ER-C+AttR": System("constrained", "ATTR"),
    "ER-C+IxG": System("constrained", "IXG"),
    "Lexpl(A)": System("explanation", "ATT"),
    "Lexpl(R)": System("explanation", "ATTR"),
    "Lexpl(I)": System("explanation", "IXG"),
}
CLASSIFIERS = [name for name, system in SYSTEMS.items() if system.mode != "explanation"]


class Bounds(NamedTuple):
    """What a constraint asks of the explanation loss: of batches, and of the dev texts."""

    train: float
    dev: float


def system_named(mode: str, guide: str) -> str:
    """The system that is trained so."""
    return next(name for name, system in SYSTEMS.items() if system == System(mode, guide))


def seeds_of(settings: Settings, system: str) -> tuple[int, ...]:
    """A system's seeds: all, or the first few where the profile says so."""
    return settings.seeds[: settings.grid.get("seeds_of", {}).get(system)]


def run_spec(settings: Settings, system: str, seed: int, bounds: Bounds | None = None) -> RunSpec:
    """One training run; a constrained one needs `bounds`."""
    this, grid = SYSTEMS[system], settings.grid
    own = grid.get("overrides", {}).get(system, {})
    started = system in grid.get("started", ())
    base = _started(settings, seed, own) if started else _base(settings, seed, own)
    if this.mode == "baseline":
        return base
    if this.mode == "joint":
        return replace(base, objective=(term("task"), _explanation(this.guide, grid["lambda"])))
    if this.mode == "explanation":
        return replace(base, objective=(_explanation(this.guide, 1.0),))
    if bounds is None:
        raise ValueError(f"{system} is trained with bounds; see bounds_of")
    limit, rate = ("dev_explanation", 1.1 * bounds.dev), grid["constraint_lr"][this.guide]
    rule = CheckpointRule("dev_task", bound=limit, patience=5, patience_unmet=10)
    return replace(
        base,
        objective=(term("task"), _explanation(this.guide, 0.0)),
        optimiser=replace(base.optimiser, checkpoint=rule),
        update=update("constrained", term="explanation", bound=bounds.train, lr=rate),
    )


def start_spec(settings: Settings, seed: int) -> RunSpec:
    """What the profile's `started` systems and sweeps go on from: the task alone, learnt so far.

    With what follows it has as many steps as a run in one go, so that no system is trained for
    longer than the Baseline beside it.
    """
    return _base(settings, seed, settings.grid.get("start", {}))


def sweep_specs(settings: Settings) -> dict[tuple[str | None, float, int], RunSpec]:
    """(guide, λ, seed) → run of Figures 5 and 12, with the Baseline's hyper-parameters.

    No guide: λ = 0, which is one run for all of them; their losses are measured and have no part in
    it. Where systems are short runs, these are too, perhaps on fewer texts.
    """
    sweep, short = settings.grid["sweep"], settings.grid.get("started")
    unguided = [_explanation(guide, 0.0, logged=watched_loss(guide)) for guide in GUIDES]

    def run(guide: str | None, weight: float, seed: int) -> RunSpec:
        base = _started(settings, seed) if short else run_spec(settings, "Baseline", seed)
        rows = sweep.get("train_rows", base.data.train_rows)
        added = [_explanation(guide, weight)] if guide else unguided
        data = replace(base.data, train_rows=rows)
        return replace(base, data=data, objective=(term("task"), *added))

    return {
        (guide, weight, seed): run(guide, weight, seed)
        for weight in sweep["lambda"]
        for guide in (GUIDES if weight else (None,))
        for seed in settings.seeds[: sweep["seeds"]]
    }


def watched_loss(guide: str) -> str:
    """Under which name a run that follows no guide logs the explanation loss of this one."""
    return f"explanation_{guide}"


def _started(settings: Settings, seed: int, overrides: Mapping[str, Any] = NOTHING) -> RunSpec:
    """A short run that begins where the start ended."""
    options = {**settings.grid["short"], **overrides}
    rows = options.pop("train_rows", settings.grid.get("train_rows"))
    spec = _base(settings, seed, options)
    data = replace(spec.data, train_rows=rows)
    return replace(spec, data=data, start=start_spec(settings, seed))


def audited(settings: Settings) -> dict[str, RunSpec]:
    """What is trained only to see what an oversight of the paper's code changes, on one seed."""
    first = settings.seeds[0]
    return {name: double_embedding(run_spec(settings, name, first)) for name in AUDITED}


def double_embedding(spec: RunSpec) -> RunSpec:
    """The same run with the embedding block applied to its own output, as in the paper's code."""
    start = double_embedding(spec.start) if spec.start else None
    return replace(spec, model=replace(spec.model, quirks=("double_embedding",)), start=start)


def bounds_of(explanation_only: pd.DataFrame, guide: str) -> Bounds:
    """The paper's rule, from the explanation-only runs of a technique, to two digits.

    1.5 times the mean over seeds of the smallest loss of a training batch, and the mean of the
    smallest dev loss.
    """
    runs = guided_by(explanation_only, guide)
    train, dev = runs["lowest_train_explanation_min"], runs["lowest_dev_explanation"]
    return Bounds(*(float(f"{bound:.1e}") for bound in (1.5 * train.mean(), dev.mean())))


def guided_by(runs: pd.DataFrame, guide: str) -> pd.DataFrame:
    """The rows of a technique's runs."""
    return runs[[guide_of(spec) == guide for spec in runs["spec"]]]


def system_of(spec: RunSpec) -> str:
    """The name of the system that a run belongs to."""
    if (guide := guide_of(spec)) is None:
        return "Baseline"
    mode = "explanation" if len(spec.objective) == 1 else "joint"
    return system_named("constrained" if spec.update.name == "constrained" else mode, guide)


def named(settings: Settings, run: RunSpec) -> str:
    """What a reader calls a run."""
    start = start_spec(settings, run.seed)
    if settings.grid.get("started") and run in (start, double_embedding(start)):
        return "start"
    if run.model.quirks:
        return f"{system_of(run)} with its embedding applied twice"
    for (guide, weight, _), spec in sweep_specs(settings).items():
        if run == spec and spec != run_spec(settings, "Baseline", run.seed):
            return f"{system_named('joint', guide)} at λ = {weight:g}" if guide else "λ = 0"
    return system_of(run)


def guide_of(spec: RunSpec) -> str | None:
    """The technique that a run is guided by, if any."""
    names = {method: short for short, method in TECHNIQUES.items()}
    methods = [dict(t.options)["guide"] for t in spec.objective if t.name == "explanation"]
    return names[methods[0]] if methods else None


def _explanation(guide: str, weight: float, **options: str) -> Term:
    return term("explanation", weight, guide=TECHNIQUES[guide], **options)


def _base(settings: Settings, seed: int, overrides: Mapping[str, Any] = NOTHING) -> RunSpec:
    """A run of the task alone; `overrides`: what its optimiser has that the profile's has not."""
    grid, corpus = settings.grid, settings.roles["in_domain"]
    options = {**grid["optimiser"], **overrides}
    if "betas" in options:
        options["betas"] = tuple(options["betas"])
    rows = grid.get("train_rows"), grid.get("dev_rows")
    return RunSpec(
        data=DataSpec(corpus, settings.source_of(corpus), grid["max_length"], *rows),
        model=ModelSpec(grid["model"], head="er", layers=grid.get("layers")),
        # L_expl depends on length: the smallest loss of batches of one length, of which bounds are
        # made, would be that of the longest texts.
        optimiser=OptimiserSpec(**options, mixed=True),
        seed=seed,
    )
