"""What does each way of guiding change over the Baseline? (Table 1)"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from erlib.metrics.stats import t_interval
from erlib.papers.cells import Reading
from erlib.papers.er_lens.sets import HOME, in_table_2
from erlib.papers.er_lens.systems import CLASSIFIERS, GLOBAL, TECHNIQUES, system_named
from erlib.papers.study import Study
from erlib.papers.trained import deciding
from erlib.reports.cells import Cell as Place
from erlib.reports.paper_numbers import paper_table

MIN_SEEDS = 3  # fewer have no interval
MODES = {"Joint": "joint", "Constrained": "constrained"}
SCOPES = {"Local": ("ATT",), "Global": GLOBAL}
FEWEST = 3  # seeds that make a sign
HEADINGS = {"F1": "OOD F1", "Guided": "AUC, guided", "Non-Guided": "AUC, not guided"}


def changes(study: Study, system: str, places: Sequence[Place]) -> pd.Series | None:
    """`system` minus the Baseline by seed, the mean over places, of the models that are trained."""
    differences = [_change(study, system, place) for place in places]
    found = [d for d in differences if d is not None]
    return pd.concat(found, axis=1).mean(axis=1) if found else None


def _change(study: Study, system: str, place: Place) -> pd.Series | None:
    after, before = (
        study.read(Place(place.table, row, place.column, place.metric)) or dict[int, Reading]()
        for row in (system, "Baseline")
    )
    both = sorted(after.keys() & before.keys())
    decide = deciding({s: after[s].trained and before[s].trained for s in both})
    if not decide:
        return None
    return pd.Series({s: after[s].value - before[s].value for s in decide})


def f1_changes(study: Study, system: str, *columns: str) -> pd.Series | None:
    """In F1 points, the mean over these sets of Table 2."""
    return changes(study, system, [Place("table2", "", c, "f1_macro") for c in columns])


def auc_changes(
    study: Study, system: str, technique: str, metric: str = "auc_x100"
) -> pd.Series | None:
    """In points of AUC, or of another measure, on the dev texts of the training corpus."""
    return changes(study, system, [Place("table3", "", f"{HOME}/{technique}", metric)])


def outside(study: Study) -> list[str]:
    """The columns of Table 2 that are not of the training corpus."""
    return [t.column for t in in_table_2(study.settings) if not t.in_domain]


def signs(study: Study) -> pd.DataFrame:
    """Table 1: what each way of guiding does, as a sign; + or − where the interval excludes 0."""
    printed = paper_table("er_lens", "table1").set_index(["row", "column"])["printed"]
    rows = []
    for mode, kind in MODES.items():
        for scope, guides in SCOPES.items():
            systems = {g: system_named(kind, g) for g in guides}
            effects = {
                "F1": [f1_changes(study, s, *outside(study)) for s in systems.values()],
                "Guided": [auc_changes(study, s, g) for g, s in systems.items()],
                "Non-Guided": [
                    auc_changes(study, s, x)
                    for g, s in systems.items()
                    for x in TECHNIQUES
                    if x != g
                ],
            }
            row: dict[str, str] = {"": f"{mode}/{scope}"}
            for name, measured in effects.items():
                row[HEADINGS[name]] = effect([d for d in measured if d is not None])
                sign = printed[f"{mode}/{scope}", name].replace("-", "−")
                row[f"{HEADINGS[name]}, paper"] = sign or "unclear"
            rows.append(row)
    return pd.DataFrame(rows).set_index("")


def effect(measured: Sequence[pd.Series]) -> str:
    """The sign of the mean over systems and techniques, with the mean and its interval over seeds.

    `measured`: differences by seed. Where some have three seeds and others fewer, only those with
    three make the sign, by the seeds that all of them have.
    """
    if not measured:
        return "–"
    enough = [d for d in measured if len(d) >= FEWEST] or measured
    means = pd.concat(enough, axis=1).dropna().mean(axis=1)
    if means.empty:
        return "–"
    sign = "?"
    if len(means) >= FEWEST:
        sign = "0" if 0.0 in t_interval(means) else ("+" if means.mean() > 0 else "−")
    some = f"\n{len(enough)} of {len(measured)} effects" if len(enough) < len(measured) else ""
    return f"{sign}\n{with_interval(means)}{some}"


def with_interval(values: ArrayLike) -> str:
    """The mean over seeds and its 95 % t interval; of fewer than three only how many there are."""
    x = np.asarray(values)
    found = t_interval(x)
    spread = f" ({found.low:+.1f} to {found.high:+.1f})" if x.size >= FEWEST else f", n={x.size}"
    return f"{x.mean():+.1f}{spread}".replace("-", "−")


def by_system(study: Study) -> pd.DataFrame:
    """What each system changes: every technique's AUC in domain, and F1."""
    rows = []
    for system in CLASSIFIERS[1:]:
        found = {x: auc_changes(study, system, x) for x in TECHNIQUES}
        for test in in_table_2(study.settings):
            if test.in_domain:
                found[f"F1, {test.name}"] = f1_changes(study, system, test.column)
        found["F1, out of domain"] = f1_changes(study, system, *outside(study))
        if any(d is not None for d in found.values()):
            said = {n: "–" if d is None else with_interval(d) for n, d in found.items()}
            rows.append({"": system, **said})
    return pd.DataFrame(rows).set_index("")
