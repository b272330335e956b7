"""Does anything predict F1 on other texts? (Figures 6 and 14)"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from erlib.metrics.estimates import Points, correlation_of
from erlib.metrics.stats import Interval
from erlib.papers.er_lens.evaluations import HOME, LONG, YELP_50, TestSet, annotated, test_sets
from erlib.papers.er_lens.systems import CLASSIFIERS
from erlib.papers.study import Study
from erlib.reports.cells import Cell as Place
from erlib.reports.panels import Drawn, legend_below, note
from erlib.reports.style import figure_style, new_figure, palette

CONSTRAINED = ["Baseline", "ER-C+Att", "ER-C+AttR", "ER-C+IxG"]
METRICS = {"AUC": "auc_x100", "AP": "average_precision", "recall@k": "recall_at_k"}
PANELS = (  # of Figure 6: predictor, where it is measured, where F1 is
    ("F1", HOME, LONG),
    ("AUC-DX-C", HOME, LONG),
    ("AUC-IXG", LONG, LONG),
    ("AUC-IXG", YELP_50, YELP_50),
)
PREDICTORS = ("F1", "AUC-ATT", "AUC-ATTR", "AUC-DX-C", "AP-DX-C", "recall@k-DX-C")


def figure_6(study: Study) -> Drawn:
    """Does F1 or plausibility predict F1 elsewhere? Baseline and constrained systems."""
    sets, tables = annotated(study.settings), []
    wanted = [(predictor, sets[a], sets[b]) for predictor, a, b in PANELS if {a, b} <= set(sets)]
    figure, [axes] = new_figure(1, len(wanted), width=3.1 * len(wanted), height=3.7)
    with figure_style():
        for axis, (predictor, where, test) in zip(axes, wanted, strict=True):
            data = predicted(study, predictor, where, test).query("system in @CONSTRAINED")
            tables.append(data)
            _scatter(axis, data, size=28)
            axis.set_xlabel(f"{_named(predictor)},\n{where.name}")
            axis.set_ylabel(f"F1 (%) on {test.name}")
        legend_below(figure, axes[0])
    return figure, pd.concat(tables, ignore_index=True)


def figure_14(study: Study) -> Drawn:
    """Six predictors measured in domain against F1 on every other set, all systems."""
    home, *others = test_sets(study.settings)
    figure, axes = new_figure(
        len(PREDICTORS), len(others), width=2.1 * len(others) + 0.8, height=11.5
    )
    tables = []
    with figure_style():
        for row, predictor in zip(axes, PREDICTORS, strict=True):
            row[0].set_ylabel("F1 (%)", fontsize=8.5)
            for axis, test in zip(row, others, strict=True):
                data = predicted(study, predictor, home, test)
                tables.append(data)
                _scatter(axis, data, size=12)
                axis.tick_params(labelsize=7.5)
                axis.locator_params(nbins=4)
                axis.set_xlabel(_named(predictor), fontsize=8.5)
                if row is axes[0]:
                    axis.set_title(f"{titled(test)}\n{axis.get_title()}", fontsize=8.5)
        legend_below(figure, axes[0][0])
    return figure, pd.concat(tables, ignore_index=True)


def _named(predictor: str) -> str:
    """As an axis calls it."""
    measure, _, technique = predictor.partition("-")
    return f"{measure} of {technique} x 100" if technique else "F1 (%)"


def predicted(study: Study, predictor: str, where: TestSet, test: TestSet) -> pd.DataFrame:
    """One row per trained run: `x`, a predictor measured on `where`, and `y`, its F1 on `test`."""
    measure, _, technique = predictor.partition("-")
    rows = []
    for system in CLASSIFIERS:
        place = f1_at(system, where)
        if technique:
            place = Place("table9", system, f"{where.plausibility}/{technique}", METRICS[measure])
        x, y = study.read(place) or {}, study.read(f1_at(system, test)) or {}
        both = [seed for seed in sorted(x.keys() & y.keys()) if y[seed].trained]
        rows += [(system, seed, x[seed].value, y[seed].value) for seed in both]
    found = pd.DataFrame(rows, columns=["system", "seed", "x", "y"]).astype(
        {"x": float, "y": float}
    )
    return found.assign(predictor=predictor, measured_on=where.name, predicted=test.name)


def f1_at(system: str, test: TestSet) -> Place:
    """Where F1 on a set stands; the paper has Yelp-50's apart."""
    return Place("table7" if test.paper == YELP_50 else "table2", system, test.column, "f1_macro")


def points(data: pd.DataFrame) -> Points:
    """x and y of every system that says how they go together: four seeds, neither side constant."""
    return {
        str(system): (of["x"].to_numpy(), of["y"].to_numpy())
        for system, of in data.groupby("system", sort=False)
        if len(of) > 3 and of["x"].nunique() > 1 and of["y"].nunique() > 1
    }


def correlation(data: pd.DataFrame) -> tuple[float, Interval] | None:
    """Spearman's ρ over seeds within each system, pooled (metrics.md §13.8), and its interval."""
    if not (told := points(data)):
        return None
    found = correlation_of(told)
    within = found.interval(0.95)
    low, high, rho = (float(np.tanh(z)) for z in (within.low, within.high, found.mean))
    return rho, Interval(low, high)


def _scatter(axis: Axes, data: pd.DataFrame, size: float) -> None:
    for system, points in data.groupby("system", sort=False):
        colour = palette([system])[system]
        axis.scatter(points["x"], points["y"], s=size, color=colour, label=system)
    if data.empty:
        note(axis, "no\ntrained\nmodel")
    elif (found := correlation(data)) is None:
        axis.set_title("too few seeds for ρ", fontsize=8)
    else:
        rho, within = found
        said = f"ρ = {rho:.2f} [{within.low:.2f}, {within.high:.2f}]".replace("-", "−")
        axis.set_title(said, fontsize=8)


def titled(test: TestSet) -> str:
    """A set and, in the next line, what it stands for."""
    return test.name if test.paper in (None, test.name) else f"{test.name}\n(for {test.paper})"
