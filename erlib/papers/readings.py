"""What does a paper give for a claim: a cell of one seed, distances of models, or x and y?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from erlib.metrics.estimates import Points, text_draws
from erlib.metrics.pseudovalues import Pairs
from erlib.metrics.scales import Scale
from erlib.reports.cells import Cell

Floats = NDArray[np.float64]
DRAWS = 200  # of the texts, for a statistic that is no mean over them


@dataclass(frozen=True, eq=False)
class Reading:
    """One cell of one seed: the value in the paper's unit, and the texts that it comes from.

    `texts`: a Series, of which the value is `times` the mean, or a DataFrame, of which it is
    `statistic`; by the id of the text, which no text of another set should have. Undefined texts
    are NaN. `trained`: a model that has not learnt its task decides nothing. `chosen`: the model
    itself chose the texts (its easy ones, say), so that those of two models need not be the same.
    """

    value: float
    texts: pd.Series | pd.DataFrame | None = None
    statistic: Callable[[pd.DataFrame], float] | None = None
    trained: bool = True
    times: float = 1.0
    chosen: bool = False

    def __post_init__(self) -> None:
        if self.texts is None:
            return
        object.__setattr__(self, "texts", self.texts.dropna().sort_index())
        if isinstance(self.texts, pd.DataFrame) and self.statistic is None:
            raise ValueError("a reading with a DataFrame of texts needs the statistic of its value")
        found = self._of(self.texts) if len(self.texts) else self.value
        if not np.isclose(found, self.value, rtol=1e-6, atol=1e-9, equal_nan=True):
            raise ValueError(f"the texts give {found:.6g}, not the value of {self.value:.6g}")

    def _of(self, texts: pd.Series | pd.DataFrame) -> float:
        if isinstance(texts, pd.DataFrame):
            assert self.statistic is not None
            return float(self.statistic(texts))
        return self.times * float(texts.mean())

    @property
    def count(self) -> int:
        return 0 if self.texts is None else len(self.texts)

    def among(self, ids: pd.Index) -> Reading:
        """The same cell on these texts alone."""
        if self.texts is None or ids.equals(self.texts.index):
            return self
        texts = self.texts.loc[ids]
        return replace(self, value=self._of(texts), texts=texts)

    def influence(self, scale: Scale) -> pd.Series:
        """How much each text moves a mean on the scale: slope · times · (x − mean)/N."""
        assert isinstance(self.texts, pd.Series)
        slope = scale.slope_at(self.value, self.count)
        return slope * self.times * (self.texts - self.texts.mean()) / self.count

    @cached_property
    def drawn(self) -> Floats:
        """The value in each resample of the texts."""
        counts = text_draws(self.count)[:DRAWS]
        if isinstance(self.texts, pd.Series):
            return self.times * (counts @ self.texts.to_numpy(float)) / self.count
        places = np.arange(self.count)
        assert self.texts is not None
        rows = (self.texts.iloc[np.repeat(places, count.astype(int))] for count in counts)
        return np.array([self._of(texts) for texts in rows])


Readings = Mapping[int, Reading]  # by seed
Read = Callable[[Cell], Readings | None]


@dataclass(frozen=True, eq=False)
class Distances:
    """Of models, in the metric's unit: `across` of system s and Baseline s′, `within` of Baselines.

    Both by (s, s′).
    """

    across: Pairs
    within: Pairs
    texts: int = 0


@dataclass(frozen=True, eq=False)
class Correlated:
    """x and y by seed within each system, for a claim that they are not related."""

    points: Points
    texts: int = 0
