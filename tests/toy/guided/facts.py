"""Which numbers do the report's sentences need?"""

from __future__ import annotations

from erlib.papers.study import Study


def means(study: Study) -> dict[str, float]:
    """AUC by system, mean over seeds."""
    numbers = study.numbers(study.of("table1")).query("metric == 'auc'")
    return numbers.groupby("row")["value"].mean().to_dict()
