from __future__ import annotations

import pytest

from erlib.config import DataSpec, ModelSpec, OptimiserSpec, RunSpec, term
from tests import corpus, tiny


@pytest.fixture
def spec(tmp_path, monkeypatch):
    """A run of three short epochs of a tiny BERT on a tiny local corpus with rationales."""
    corpus.write(tmp_path / "data")
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path / "data"))
    return RunSpec(
        data=DataSpec("movies", "local", 32),
        model=ModelSpec(str(tiny.directory("bert"))),
        objective=(term("task"), term("explanation", 0.5, guide="attention")),
        optimiser=OptimiserSpec(lr=5e-3, epochs=3, batch_size=8),
        seed=3,
    )
