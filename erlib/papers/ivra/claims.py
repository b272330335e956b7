"""Which claims are about no cells? Those of seconds, which are measured in the notebook."""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.metrics.estimates import Evidence
from erlib.papers.holes import remark_of
from erlib.papers.ivra.cells import MARKED
from erlib.papers.ivra.costs import at_the_largest, explaining_times, training_times
from erlib.papers.study import Study
from erlib.reports.criteria import criteria

TIMES = "IV-C15"


def given(study: Study) -> dict[str, dict[str, Evidence]]:
    """Of each contrast of times the log of their ratio at the largest size, by repetition."""
    timed = {"figure-9": training_times(study), "figure-10": explaining_times(study)}
    named = {row: f"IvRA {short}" for row, short in MARKED.items()}
    seconds = {
        figure: pd.DataFrame() if remark_of(times) else at_the_largest(times).rename(columns=named)
        for figure, times in timed.items()
    }
    evidence = {}
    for contrast in criteria("ivra")[TIMES].contrasts:
        [difference] = contrast.differences
        after, before = difference.after, difference.before
        assert before is not None
        if after.row in seconds[after.table] and before.row in seconds[before.table]:
            own, base = seconds[after.table][after.row], seconds[before.table][before.row]
            ratios = (np.log(own) - np.log(base)).to_numpy()
            evidence[contrast.name] = Evidence(ratios, base=float(base.mean()))
    return {TIMES: evidence}
