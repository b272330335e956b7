"""Which numbers stand in the paper's tables?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from erlib.metrics.robustness import jaccard
from erlib.papers.regex.grid import (
    BEST,
    Cell,
    ablated,
    ablated_predictions,
    attacked,
    faithful,
    fresh,
    full_text,
    initialisations,
)
from erlib.papers.regex.study import METRICS, Study
from erlib.papers.regex.systems import ABLATIONS
from erlib.reports.paper_numbers import Beside, beside, paper_table

STATISTICS = {  # Table 6: the paper's row → our summary, times what
    "Number of successful attacks": ("successes", 1),
    "Original accuracy(%)": ("accuracy", 100),
    "Accuracy under attack(%)": ("accuracy_under_attack", 100),
    "Attack success rate(%)": ("success_rate", 100),
    "Average perturbed word(%)": ("changed", 100),
    "Average num. words per input": ("words", 1),
    "Avg num queries": ("queries", 1),
}


def table_1(study: Study) -> Beside:
    """Sufficiency and comprehensiveness of every attribution in every pair."""
    return beside(_faithfulness(study, faithful(study.settings), pairs=True), "regex", "table1")


def table_2(study: Study) -> Beside:
    """F1-macro (%) of the full-text models and of classifiers that read rationales."""
    cells = [*full_text(study.settings), *fresh(study.settings)]
    return beside(_f1(study, cells), "regex", "table2", digits=1)


def table_3(study: Study) -> Beside:
    """Jaccard@25 % between initialisations, and with the untrained model."""
    return _similarities(study, "table3", small=False)


def table_4(study: Study) -> Beside:
    """The ablation for the two attributions that the paper's claims are about."""
    cells = [c for c in ablated(study.settings) if c.attribution in BEST]
    rows = [r for r in ABLATIONS if r in set(paper_table("regex", "table4")["row"])]
    return _ablation(study, cells, "table4", rows)


def table_6(study: Study) -> Beside:
    """The seven statistics of the attack."""
    rows = [
        {"row": row, "column": c.system, "value": scale * study.value(c.spec, name)}
        for c in attacked(study.settings)
        for row, (name, scale) in STATISTICS.items()
    ]
    return beside(pd.DataFrame(rows), "regex", "table6")


def table_7(study: Study) -> Beside:
    """F1-macro (%) of the ablated systems; the paper leaves two of them out."""
    cells = ablated_predictions(study.settings)
    rows = [
        {"row": c.system, "column": "Full-text", "value": 100 * study.value(c.spec, "f1_macro")}
        for c in cells
    ]
    return beside(pd.DataFrame(rows), "regex", "table7")


def table_8(study: Study) -> Beside:
    """Table 3 for the second size of model."""
    return _similarities(study, "table8", small=True)


def table_9(study: Study) -> Beside:
    """F1-macro (%) of classifiers that read REGEX's rationales; the pairs that were measured."""
    ours = _f1(study, [c for c in fresh(study.settings) if c.system == "REGEX"])
    return beside(ours, "regex", "table9", rows=list(dict.fromkeys(ours["row"])))


def table_10(study: Study) -> Beside:
    """The whole ablation, six attributions."""
    return _ablation(study, ablated(study.settings), "table10", ABLATIONS)


def _ablation(study: Study, cells: Sequence[Cell], table: str, rows: list[str]) -> Beside:
    wanted = [*rows, *dict.fromkeys(c.system for c in cells if c.system not in ABLATIONS)]
    ours = _faithfulness(study, [c for c in cells if c.system in wanted], pairs=False)
    return beside(ours, "regex", table, rows=wanted)


def _faithfulness(study: Study, cells: Iterable[Cell], *, pairs: bool) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "row": f"{c.source}->{c.target}|{c.system}" if pairs else c.system,
            "column": c.attribution,
            "metric": metric,
            "value": study.value(c.spec, name),
        }
        for c in cells
        for metric, name in METRICS.items()
    )


def _f1(study: Study, cells: Iterable[Cell]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "row": f"{c.source}->{c.target}|{c.system}",
            "column": c.attribution,
            "value": 100 * study.value(c.spec, "f1_macro"),
        }
        for c in cells
    )


def _similarities(study: Study, table: str, *, small: bool) -> Beside:
    rows = []
    for system in ("REGEX", "Baseline"):
        per_text = similarities(study, system, small=small)
        names = list(initialisations(study.settings, small=small)[system])
        for a in names:
            for b in names:
                pair = per_text.get((min(a, b), max(a, b)))
                value = 1.0 if a == b else np.nan if pair is None else float(pair.mean())
                rows.append({"row": f"{a}|{system}", "column": b, "value": value})
    return beside(pd.DataFrame(rows), "regex", table)


def similarities(
    study: Study, system: str, *, small: bool
) -> dict[tuple[str, str], NDArray[np.float64]]:
    """(a, b) → [text] Jaccard@25 % of two initialisations' best tokens by α∇α, a before b."""
    scores = {
        name: [
            np.asarray(row.scores)[~np.asarray(row.special)]
            for row in study.texts(spec).itertuples()
        ]
        for name, spec in initialisations(study.settings, small=small)[system].items()
        if study.has(spec)
    }
    return {(a, b): jaccard(scores[a], scores[b]) for a, b in combinations(sorted(scores), 2)}
