"""What does the paper train, and on what?"""

from __future__ import annotations

from erlib.config import DataSpec, ModelSpec, OptimiserSpec, RunSpec, term
from erlib.parameters import Settings

SYSTEMS = {
    "Baseline": (term("task"),),
    "Guided": (term("task"), term("explanation", 2.0, guide="attention")),
}


def run_spec(settings: Settings, system: str, seed: int) -> RunSpec:
    """One training run."""
    return RunSpec(
        DataSpec(settings.roles["reviews"], settings.source, max_length=32),
        model=ModelSpec(settings.grid["model"]),
        objective=SYSTEMS[system],
        optimiser=OptimiserSpec(lr=8e-3, epochs=settings.grid["epochs"], batch_size=4),
        seed=seed,
    )


def named(settings: Settings, run: RunSpec) -> str:
    """What a reader calls a run."""
    names = {objective: system for system, objective in SYSTEMS.items()}
    return names[run.objective]
