"""What do the notebook's figures show?"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from erlib.papers.cross_paper import effects
from erlib.papers.cross_paper.columns import COLUMNS, GROUPS, in_order
from erlib.papers.cross_paper.groups import correlations, front, groups
from erlib.papers.cross_paper.rows import ROWS
from erlib.papers.cross_paper.systems import BASELINE
from erlib.papers.study import Study
from erlib.reports.panels import Drawn, nothing
from erlib.reports.style import SIGNED, SIZED, figure_style, new_figure, palette

FULL = 6.0  # standard deviations at which a colour is full
PLAUSIBLE, FAITHFUL, RIGHT = "auc", "normalised_aopc", "f1_in"


def heat_map(study: Study) -> Drawn:
    """Every row by every column: effects in standard deviations, hatched where undecided."""
    table = effects.table(study)
    table = table[np.array([COLUMNS[c].side != 0 for c in table["column"]], dtype=bool)]
    if table["standardised"].notna().sum() == 0:
        return nothing("no row has two seeds beside the Baseline's"), table
    columns = [c for c in in_order() if c.name in set(table["column"])]
    names = [c.name for c in columns]
    rows = [name for name in ROWS if name in set(table["row"])]
    values = table.pivot(index="row", columns="column", values="standardised").loc[rows, names]
    decided = table.pivot(index="row", columns="column", values="decided").loc[rows, names]
    figure, [[axis]] = new_figure(width=1.6 + 0.36 * len(names), height=1.6 + 0.3 * len(rows))
    with figure_style():
        shown = axis.imshow(values, cmap=SIGNED, vmin=-FULL, vmax=FULL, aspect="auto")
        for i, row in enumerate(rows):
            for j, name in enumerate(names):
                _mark(axis, j, i, float(values.at[row, name]), decided.at[row, name] == "yes")
        axis.set_xticks(range(len(names)), [c.title for c in columns], rotation=60, ha="right",
                        rotation_mode="anchor")  # fmt: skip
        axis.set_yticks(range(len(rows)), rows)
        axis.tick_params(length=0)
        axis.grid(False)
        _brackets(axis, [c.group for c in columns])
        figure.colorbar(shown, ax=axis, shrink=0.8, pad=0.01, label="SD over seeds")
    return figure, table


def _mark(axis: Axes, x: int, y: int, value: float, decided: bool) -> None:
    """A number in its cell, and hatching where it is not decided."""
    if not np.isfinite(value):
        return
    if not decided:
        axis.add_patch(
            Rectangle(
                (x - 0.5, y - 0.5), 1, 1, fill=False, hatch="////", edgecolor="#BBBBBB", linewidth=0
            )  # fmt: skip
        )
    dark = abs(value) > 0.7 * FULL
    said = f"{value:+.0f}" if abs(value) >= 9.5 else f"{value:+.1f}"
    weight, colour = "bold" if decided else "normal", "white" if dark else "black"
    axis.text(x, y, said.replace("-", "−"), ha="center", va="center", fontsize=6.5, color=colour,
              fontweight=weight)  # fmt: skip


def _brackets(axis: Axes, of: list[str]) -> None:
    """The columns' groups above them."""
    for group in GROUPS:
        places = [i for i, name in enumerate(of) if name == group]
        if places:
            middle = (places[0] + places[-1]) / 2
            axis.text(middle, -0.75, group, ha="center", va="bottom", fontsize=8, fontweight="bold")
            axis.axvline(places[-1] + 0.5, color="white", linewidth=3)


def metric_map(study: Study) -> Drawn:
    """Spearman's ρ of the columns over models (below) and over rows (above the diagonal)."""
    numbers = effects.by_run(study)
    both = {over: correlations(numbers, over) for over in ("models", "rows")}
    table = pd.concat([one.assign(over=over) for over, one in both.items()], ignore_index=True)
    below = both["models"]
    if below["rho"].notna().sum() == 0:
        return nothing("too few rows for a correlation"), table
    order = [name for group in groups(below, list(numbers.columns)) for name in group]
    place = {name: i for i, name in enumerate(order)}
    values = np.full((len(order), len(order)), np.nan)
    side = 1.6 + 0.32 * len(order)
    figure, [[axis]] = new_figure(width=side + 0.8, height=side)
    with figure_style():
        for over, found in both.items():
            for one in found.dropna(subset="rho").itertuples():
                i, j = sorted((place[one.a], place[one.b]), reverse=over == "models")
                values[i, j] = one.rho
                if not (one.low > 0 or one.high < 0):
                    axis.add_patch(
                        Rectangle(
                            (j - 0.5, i - 0.5),
                            1,
                            1,
                            fill=False,
                            hatch="////",
                            edgecolor="#BBBBBB",
                            linewidth=0,
                        )  # fmt: skip
                    )
                said = f"{one.rho:.1f}".replace("-", "−").replace("0.", ".")
                colour = "white" if abs(one.rho) > 0.75 else "black"
                axis.text(j, i, said, ha="center", va="center", fontsize=6, color=colour)
        shown = axis.imshow(values, cmap=SIGNED, vmin=-1, vmax=1)
        titles = [COLUMNS[name].title for name in order]
        axis.set_xticks(range(len(order)), titles, rotation=60, ha="right", rotation_mode="anchor")
        axis.set_yticks(range(len(order)), titles)
        axis.tick_params(length=0)
        axis.grid(False)
        start = -0.5
        for group in groups(below, list(numbers.columns)):
            axis.add_patch(Rectangle((start, start), len(group), len(group), fill=False,
                                     edgecolor="black", linewidth=1.2))  # fmt: skip
            start += len(group)
        figure.colorbar(shown, ax=axis, shrink=0.7, label="Spearman's ρ")
    return figure, table


def pareto(study: Study) -> Drawn:
    """Plausibility by faithfulness, coloured by F1; the rows that no other beats in all three."""
    wanted = [PLAUSIBLE, FAITHFUL, RIGHT]
    points = effects.means(study).reindex(columns=wanted).dropna()
    if points.empty:
        return nothing("plausibility, faithfulness or F1 was not measured"), points.reset_index()
    points = points.assign(front=front(points))
    figure, [[axis]] = new_figure(width=6.4, height=4.2)
    with figure_style():
        shown = axis.scatter(
            points[PLAUSIBLE], points[FAITHFUL], c=points[RIGHT], cmap=SIZED, s=70,
            edgecolors=["black" if on else "white" for on in points["front"]], linewidths=1.5,
        )  # fmt: skip
        for row, one in points.iterrows():
            axis.annotate(
                str(row), (one[PLAUSIBLE], one[FAITHFUL]), xytext=(6, 4), fontsize=8,
                textcoords="offset points", fontweight="bold" if one["front"] else "normal",
            )  # fmt: skip
        axis.set(xlabel="plausibility (AUC, mean over attributions)",
                 ylabel="faithfulness (normalised AOPC)")  # fmt: skip
        axis.margins(0.15)
        figure.colorbar(shown, ax=axis, label="F1-macro")
    return figure, points.reset_index()


def hiding(study: Study) -> Drawn:
    """On texts whose spurious word contradicts them: is it believed, and is it shown?

    Left by how often the heat map's best word is the spurious one, right by how plausible the heat
    map is. What is hidden is on the right below: believed, and not shown.
    """
    numbers = study.numbers(study.of("spurious"))
    means = numbers[numbers["column"].isin(["followed", "all"])]
    table = means.pivot_table(index="row", columns="metric", values="value", sort=False).dropna()
    if table.empty:
        return nothing("no spurious word was planted"), table.reset_index()
    figure, [axes] = new_figure(1, 2, width=8.4, height=3.8)
    colours = palette(table.index)
    labels = {"found_at_k": "spurious word is the best word", "auc": "AUC with human rationales"}
    with figure_style():
        for axis, (metric, label) in zip(axes, labels.items(), strict=True):
            for row, one in table.iterrows():
                axis.scatter(one["followed"], one[metric], s=60, color=colours[str(row)],
                             marker="s" if row == BASELINE else "o", zorder=3)  # fmt: skip
                axis.annotate(str(row), (one["followed"], one[metric]), xytext=(5, 3),
                              textcoords="offset points", fontsize=7)  # fmt: skip
            axis.set(xlabel="decisions by the spurious word", ylabel=label)
            axis.margins(0.18)
    return figure, table.reset_index()
