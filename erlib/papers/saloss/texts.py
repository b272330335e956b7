"""What do tests over texts say of flips and rationales? They stand beside the verdicts.

Texts of one model are no independent runs: verdicts are made from seeds.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from erlib.metrics.stats import holm, signed_rank_p
from erlib.papers.cells import Reading
from erlib.papers.saloss.cells import SHAPES
from erlib.papers.saloss.systems import ATTRIBUTIONS, SHOWN, tasks
from erlib.papers.study import Study
from erlib.reports.cells import Cell as Place


def read(study: Study, table: str, row: str, column: str, metric: str) -> dict[int, Reading]:
    """By seed what was measured at a place; empty where nothing was."""
    return study.read(Place(table, row, column, metric)) or {}


def flip_tests(study: Study) -> pd.DataFrame:
    """p of SaLoss against Baseline over texts, and of either of them against a random order.

    SaLoss against Baseline by the paper's rank-sum test, and by signed-rank tests with Holm over
    all cells; against random by one-sided signed-rank tests. A text's fraction is its mean over
    seeds. `trained`: have all models of the set learnt it?
    """
    rows = []
    for task in tasks(study.settings):
        by_row = {
            row: read(study, "table2", row, task.paper, "frac_tokens_to_flip")
            for row in ("Random", *(f"{s}|{a}" for s in ("Baseline", "SaLoss") for a in SHOWN))
        }
        trained = all(r.trained for of in by_row.values() for r in of.values())
        random = _text_means(by_row["Random"])
        for sign in ATTRIBUTIONS:
            a, b = (_text_means(by_row[f"{system}|{sign}"]) for system in ("Baseline", "SaLoss"))
            if a.size and b.size and random.size:
                rows.append(
                    {
                        "set": task.paper,
                        "texts": len(a),
                        "by": SHOWN[sign],
                        "Baseline": a.mean(),
                        "SaLoss": b.mean(),
                        "rank-sum": stats.ranksums(b, a).pvalue,
                        "signed-rank": signed_rank_p(b - a),
                        "Baseline\nunder random": signed_rank_p(a - random, "less"),
                        "SaLoss\nunder random": signed_rank_p(b - random, "less"),
                        "trained": "yes" if trained else "no",
                    }
                )
    table = pd.DataFrame(rows)
    table.insert(7, "Holm", holm(table["signed-rank"]))
    return table


def _text_means(of: dict[int, Reading]) -> NDArray[np.float64]:
    """[text] mean over the seeds; empty without any."""
    return np.mean([np.asarray(r.texts) for r in of.values()], axis=0) if of else np.empty(0)


def fresh_tests(study: Study) -> pd.DataFrame:
    """The paper's t-test over seeds of TextRank against Baseline rationales, in both shapes.

    `trained`: have all these classifiers and their supports learnt the task?
    """
    rows = []
    for task in tasks(study.settings):
        for shape, (table, metric) in SHAPES.items():
            a, b = (
                read(study, table, task.paper, column, metric)
                for column in ("Baseline", "SaLoss-TextRank")
            )
            if not (a and b):
                continue
            x, y = (np.array([r.value for r in of.values()]) for of in (a, b))
            tested = len(x) > 1 and np.ptp([*x, *y]) > 0
            trained = all(r.trained for of in (a, b) for r in of.values())
            rows.append(
                {
                    "set": task.paper,
                    "shape": shape.replace("_", "-"),
                    "Baseline": x.mean(),
                    "SaLoss": y.mean(),
                    "difference": y.mean() - x.mean(),
                    "t-test p": stats.ttest_ind(y, x).pvalue if tested else np.nan,
                    "seeds": len(x),
                    "trained": "yes" if trained else "no",
                }
            )
    return pd.DataFrame(rows)
