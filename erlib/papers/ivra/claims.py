"""Which claims are about no cells? Those of seconds, which are measured in the notebook."""

from __future__ import annotations

import numpy as np

from erlib.metrics.estimates import Evidence
from erlib.papers.holes import remark_of
from erlib.papers.ivra.cells import MARKED
from erlib.papers.ivra.costs import explaining_times, training_times
from erlib.papers.study import Study
from erlib.reports.criteria import criteria

TIMES = "IV-C15"


def given(study: Study) -> dict[str, dict[str, Evidence]]:
    """Of each contrast of times the log of their ratio at the largest size, by repetition."""
    found, evidence = seconds(study), dict[str, Evidence]()
    for contrast in criteria("ivra")[TIMES].contrasts:
        [difference] = contrast.differences
        assert difference.before is not None
        ends = [(end.table, end.row) for end in (difference.after, difference.before)]
        if all(end in found for end in ends):
            after, before = (found[end] for end in ends)
            ratios = np.log(after) - np.log(before)
            evidence[contrast.name] = Evidence(ratios, base=float(before.mean()))
    return {TIMES: evidence}


def seconds(study: Study) -> dict[tuple[str, str], np.ndarray]:
    """(figure, row) → seconds at the largest size, by repetition."""
    timed = {"figure-9": training_times(study), "figure-10": explaining_times(study)}
    names = {row: f"IvRA {short}" for row, short in MARKED.items()}
    found = {}
    for figure, times in timed.items():
        if remark_of(times):
            continue
        last = times[times["texts"] == times["texts"].max()].sort_values("repetition")
        for row, one in last.groupby(times.columns[0], sort=False):
            found[figure, names.get(str(row), str(row))] = one["seconds"].to_numpy()
    return found
