"""Do attributions of the same model agree?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from erlib.metrics.agreement import agreement
from erlib.papers.cells import Spec, mean_over
from erlib.papers.cross_paper.columns import Specs, Subject, column
from erlib.papers.study import Study


def _agree(study: Study, specs: Sequence[Spec], measure: str) -> pd.Series:
    """The mean over pairs of attributions, text by text."""
    tables = [study.texts(spec).set_index("id")["scores"] for spec in specs]
    scores = {str(i): [np.asarray(s) for s in table] for i, table in enumerate(tables)}
    pairs = agreement(scores, ids=list(tables[0].index))
    return pairs.groupby("id", sort=False)[measure].mean()


def _all(subject: Subject) -> Specs:
    found = tuple(s for method in subject.methods for s in subject.words(method))
    return found if len(found) > 1 else ()


for _measure, _title in {"kendall": "Kendall", "pearson": "Pearson"}.items():
    column(
        _measure, group="Agreeing", title=_title, read=mean_over(partial(_agree, measure=_measure))
    )(_all)
