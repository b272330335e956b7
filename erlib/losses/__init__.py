"""The losses of the five papers, one file per idea; importing this registers them."""

from erlib.losses import (
    disentangle,
    explanation,
    guided,
    interpretability,
    robustness,
    salience,
    task,
)
from erlib.losses.objective import OBJECTIVES, Objective, Step, Weighted, build, objective

__all__ = [
    "OBJECTIVES",
    "Objective",
    "Step",
    "Weighted",
    "build",
    "disentangle",
    "explanation",
    "guided",
    "interpretability",
    "objective",
    "robustness",
    "salience",
    "task",
]
