"""Which models have learnt their task? Nothing follows from the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pandas as pd

from erlib.config import RunSpec

Key = TypeVar("Key")


def untrained_models(models: pd.DataFrame) -> set[RunSpec]:
    """The runs that are not above the majority class on dev, and those that read rationales of one.

    `models`: rows of `erlib.run`. Models of spans have no majority class, and count as trained.
    """
    weak = set(models.loc[models["dev_accuracy"] <= models["dev_majority"], "spec"])
    readers = {s for s in models["spec"] if s.data.extract and s.data.extract.run in weak}
    return weak | readers


def deciding(trained: Mapping[Key, bool]) -> list[Key]:
    """The seeds, or pairs of models, that a verdict may rest on: those that are trained.

    Where there are none the first stands alone, which is too few for a verdict.
    """
    return [key for key, good in trained.items() if good] or list(trained)[:1]
