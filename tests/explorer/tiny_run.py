"""A run that is trained in a second and has learned that some words are good."""

from __future__ import annotations

from pathlib import Path

from erlib.config import DataSpec, ModelSpec, OptimiserSpec, RunSpec
from tests import corpus, tiny


def spec(data: Path) -> RunSpec:
    """A tiny BERT on the tiny corpus, written to `data`, which ERLIB_DATA must name."""
    corpus.write(data)
    return RunSpec(
        DataSpec("movies", "local", 32),
        model=ModelSpec(str(tiny.directory("bert"))),
        optimiser=OptimiserSpec(lr=2e-3, epochs=12, batch_size=4),
        seed=3,
    )
