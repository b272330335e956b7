"""The kinds of evaluation, one file each; importing this registers them."""

from erlib.training.kinds import (
    agreement,
    attack,
    attributions,
    consistency,
    curvature,
    faithfulness,
    flips,
    frozen_probe,
    important_share,
    parts_of_speech,
    plausibility,
    predictions,
    removals,
    simulatability,
    soft_faithfulness,
    word_scores,
)

__all__ = [
    "agreement",
    "attack",
    "attributions",
    "consistency",
    "curvature",
    "faithfulness",
    "flips",
    "frozen_probe",
    "important_share",
    "parts_of_speech",
    "plausibility",
    "predictions",
    "removals",
    "simulatability",
    "soft_faithfulness",
    "word_scores",
]
