"""What does each way of guiding change over the Baseline? (Table 1)"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from erlib.metrics.stats import t_interval
from erlib.papers.er_lens.evaluations import HOME, in_table_2
from erlib.papers.er_lens.systems import CLASSIFIERS, GLOBAL, TECHNIQUES, system_named
from erlib.papers.study import Study
from erlib.papers.trained import deciding
from erlib.reports.cells import Cell as Place
from erlib.reports.paper_numbers import paper_table

FEWEST = 3  # seeds that make a sign or an interval
MODES = {"Joint": "joint", "Constrained": "constrained"}
SCOPES = {"Local": ("ATT",), "Global": GLOBAL}
HEADINGS = {"F1": "OOD F1", "Guided": "AUC, guided", "Non-Guided": "AUC, not guided"}
Change: TypeAlias = pd.Series | None  # a difference by seed; None where none was measured


def changes(study: Study, system: str, places: Sequence[Place]) -> Change:
    """`system` minus the Baseline by seed, the mean over places, of the models that are trained."""
    found = [d for place in places if (d := _change(study, system, place)) is not None]
    return pd.concat(found, axis=1).mean(axis=1) if found else None


def _change(study: Study, system: str, place: Place) -> Change:
    metric, column = place.metric, place.column
    after, before = (
        study.read(Place(place.table, row, column, metric)) or {} for row in (system, "Baseline")
    )
    both = sorted(after.keys() & before.keys())
    decide = deciding({s: after[s].trained and before[s].trained for s in both})
    return pd.Series({s: after[s].value - before[s].value for s in decide}) if decide else None


def f1_changes(study: Study, system: str, *columns: str) -> Change:
    """In F1 points, the mean over these sets of Table 2."""
    return changes(study, system, [Place("table2", "", c, "f1_macro") for c in columns])


def auc_changes(study: Study, system: str, technique: str, metric: str = "auc_x100") -> Change:
    """In points of AUC, or of another measure, on the dev texts of the training corpus."""
    return changes(study, system, [Place("table3", "", f"{HOME}/{technique}", metric)])


def outside(study: Study) -> list[str]:
    """The columns of Table 2 that are not of the training corpus."""
    return [t.column for t in in_table_2(study.settings) if not t.in_domain]


def signs(study: Study) -> pd.DataFrame:
    """Table 1: what each way of guiding does, as a sign; + or − where the interval excludes 0."""
    printed = paper_table("er_lens", "table1").set_index(["row", "column"])["printed"]
    rows = []
    for (mode, kind), (scope, guides) in product(MODES.items(), SCOPES.items()):
        systems = {guide: system_named(kind, guide) for guide in guides}
        others = [(s, x) for guide, s in systems.items() for x in TECHNIQUES if x != guide]
        found = {
            "F1": [f1_changes(study, s, *outside(study)) for s in systems.values()],
            "Guided": [auc_changes(study, s, guide) for guide, s in systems.items()],
            "Non-Guided": [auc_changes(study, s, x) for s, x in others],
        }
        row = {"": f"{mode}/{scope}"}
        for name, heading in HEADINGS.items():
            sign = printed[f"{mode}/{scope}", name].replace("-", "−")
            row |= {heading: effect(found[name]), f"{heading}, paper": sign or "unclear"}
        rows.append(row)
    return pd.DataFrame(rows).set_index("")


def effect(found: Iterable[Change]) -> str:
    """The sign of the mean over systems and techniques, with the mean and its interval over seeds.

    Where some have three seeds and others fewer, only those with three make the sign, by the seeds
    that all of them have.
    """
    measured = [change for change in found if change is not None]
    if not measured:
        return "–"
    enough = [change for change in measured if len(change) >= FEWEST] or measured
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
    home = [test for test in in_table_2(study.settings) if test.in_domain]
    rows = {}
    for system in CLASSIFIERS[1:]:
        found = {x: auc_changes(study, system, x) for x in TECHNIQUES}
        found |= {f"F1, {t.name}": f1_changes(study, system, t.column) for t in home}
        found["F1, out of domain"] = f1_changes(study, system, *outside(study))
        if any(d is not None for d in found.values()):
            rows[system] = {n: "–" if d is None else with_interval(d) for n, d in found.items()}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("")
