"""Does anything predict F1 on other texts? (Figures 6 and 14)"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from erlib.metrics.estimates import Points, correlation_of
from erlib.metrics.stats import Interval
from erlib.papers.er_lens.sets import HOME, LONG, YELP_50, TestSet, annotated, test_sets
from erlib.papers.er_lens.systems import CLASSIFIERS, TECHNIQUES
from erlib.papers.study import Study
from erlib.reports.style import figure_style, new_figure, palette

CONSTRAINED = ["Baseline", "ER-C+Att", "ER-C+AttR", "ER-C+IxG"]
METRICS = {"AUC": "auc_x100", "AP": "average_precision", "recall@k": "recall_at_k"}
PANELS = (  # of Figure 6: predictor, where it is measured, where F1 is
    ("F1", HOME, LONG),
    ("AUC-DX-C", HOME, LONG),
    ("AUC-IXG", LONG, LONG),
    ("AUC-IXG", YELP_50, YELP_50),
)
Drawn = tuple[Figure, pd.DataFrame]
PREDICTORS = ("F1", "AUC-ATT", "AUC-ATTR", "AUC-DX-C", "AP-DX-C", "recall@k-DX-C")
AXES = {  # as an axis calls it
    "F1": "F1 (%)",
    **{
        f"{measure}-{technique}": f"{measure} of {technique} x 100"
        for measure in ("AUC", "AP", "recall@k")
        for technique in TECHNIQUES
    },
}


def figure_6(study: Study) -> Drawn:
    """Does F1 or plausibility predict F1 elsewhere? Baseline and constrained systems."""
    sets = annotated(study.settings)
    wanted = [(predictor, sets[a], sets[b]) for predictor, a, b in PANELS if {a, b} <= set(sets)]
    panels = [predicted(study, *one) for one in wanted]
    panels = [data[data["system"].isin(CONSTRAINED)] for data in panels]
    figure, axes = new_figure(1, len(panels), width=3.1 * len(panels), height=3.7)
    with figure_style():
        for axis, (predictor, where, test), data in zip(axes[0], wanted, panels, strict=True):
            _scatter(axis, data, size=28)
            axis.set_xlabel(f"{AXES[predictor]},\n{where.name}")
            axis.set_ylabel(f"F1 (%) on {test.name}")
        legend_below(figure, axes[0][0])
    return figure, pd.concat(panels, ignore_index=True)


def figure_14(study: Study) -> Drawn:
    """Six predictors measured in domain against F1 on every other set, all systems."""
    home, *others = test_sets(study.settings)
    figure, axes = new_figure(
        len(PREDICTORS), len(others), width=2.1 * len(others) + 0.8, height=11.5
    )
    tables = []
    with figure_style():
        for row, predictor in enumerate(PREDICTORS):
            for column, test in enumerate(others):
                axis = axes[row][column]
                data = predicted(study, predictor, home, test)
                tables.append(data)
                _scatter(axis, data, size=12)
                axis.tick_params(labelsize=7.5)
                axis.locator_params(nbins=4)
                axis.set_xlabel(AXES[predictor], fontsize=8.5)
                axis.set_ylabel("F1 (%)" if column == 0 else "", fontsize=8.5)
                if row == 0:
                    axis.set_title(f"{titled(test)}\n{axis.get_title()}", fontsize=8.5)
        legend_below(figure, axes[0][0])
    return figure, pd.concat(tables, ignore_index=True)


def predicted(study: Study, predictor: str, where: TestSet, test: TestSet) -> pd.DataFrame:
    """One row per trained run: `x`, a predictor measured on `where`, and `y`, its F1 on `test`."""
    f1, keys = f1_scores(study), ["system", "seed"]
    f1 = f1[f1["trained"]]
    y = f1[f1["set"] == test.name].set_index(keys)["value"]
    if predictor == "F1":
        x = f1[f1["set"] == where.name].set_index(keys)["value"]
    else:
        measure, technique = predictor.split("-", 1)
        scores = study.once("table9", lambda: study.numbers(study.of("table9")))
        column = scores["column"] == f"{where.plausibility}/{technique}"
        chosen = scores[column & (scores["metric"] == METRICS[measure])]
        x = chosen.rename(columns={"row": "system"}).set_index(keys)["value"]
    both = pd.DataFrame({"x": x, "y": y}).dropna().reset_index()
    both["system"] = pd.Categorical(both["system"], CLASSIFIERS, ordered=True)
    both = both.sort_values(keys).astype({"system": str}).reset_index(drop=True)
    return both.assign(predictor=predictor, measured_on=where.name, predicted=test.name)


def f1_scores(study: Study) -> pd.DataFrame:
    """F1 of every run on every set: system, set, value, seed, trained, texts."""

    def made() -> pd.DataFrame:
        named = {(t.column, t.paper == YELP_50): t.name for t in test_sets(study.settings)}
        if YELP_50 in (sets := annotated(study.settings)):
            named[YELP_50, True] = sets[YELP_50].name
        found = study.numbers(study.of("table2", "table7")).dropna(subset="value")
        apart = found["table"] == "table7"
        found["set"] = [named[place] for place in zip(found["column"], apart, strict=True)]
        found = found.rename(columns={"row": "system"})
        return found[["system", "set", "value", "seed", "trained", "texts"]].drop_duplicates()

    return study.once("f1", made)


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


def note(axis: Axes, said: str) -> None:
    """What stands in the middle of a panel that shows nothing."""
    axis.text(0.5, 0.5, said, transform=axis.transAxes,
              ha="center", va="center", fontsize=7.5, color="#666666")  # fmt: skip


def legend_below(figure: Figure, axis: Axes) -> None:
    """One legend for all panels, made of what the first one shows; none where that is nothing."""
    handles, labels = axis.get_legend_handles_labels()
    if not handles:
        return
    figure.legend(handles, labels, loc="outside lower center", ncols=min(7, len(labels)))


def titled(test: TestSet) -> str:
    """A set and, in the next line, what it stands for."""
    return test.name if test.paper in (None, test.name) else f"{test.name}\n(for {test.paper})"
