"""What do figures of several panels share?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from erlib.reports.style import new_figure, palette

Drawn = tuple[Figure, pd.DataFrame]  # a figure, and the numbers behind it


def panels(count: int, columns: int, *, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """So many panels in rows of `columns`; the places that are left over stay empty."""
    figure, rows = new_figure(-(-count // columns), columns, width=width, height=height)
    axes = [axis for row in rows for axis in row]
    for spare in axes[count:]:
        spare.set_axis_off()
    return figure, axes[:count]


def legend_below(figure: Figure, axis: Axes, most: int = 7, **options: Any) -> None:
    """One legend for all panels, made of what this one shows, in `most` columns or fewer; none
    where that is nothing."""
    handles, labels = axis.get_legend_handles_labels()
    if handles:
        columns = min(most, len(labels))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, **options)


def note(axis: Axes, said: str) -> None:
    """What stands in the middle of a panel that shows nothing."""
    axis.text(0.5, 0.5, said, transform=axis.transAxes,
              ha="center", va="center", fontsize=7.5, color="#666666")  # fmt: skip


def nothing(said: str) -> Figure:
    """A figure of one panel that shows nothing."""
    figure, [[axis]] = new_figure(height=1.2)
    axis.set_axis_off()
    note(axis, said)
    return figure


def heat_map(
    axis: Axes, values: pd.DataFrame, shown: str | pd.DataFrame, *, size: float, **options: Any
) -> None:
    """A map of numbers with each in its place: formatted by `shown`, or as that has them."""
    written = (
        {"annot": True, "fmt": shown} if isinstance(shown, str) else {"annot": shown, "fmt": ""}
    )
    sns.heatmap(values, ax=axis, annot_kws={"fontsize": size}, **written, **options)
    axis.tick_params(axis="y", rotation=0)
    axis.grid(False)


def band(
    axis: Axes, middle: pd.Series, low: pd.Series, high: pd.Series, *, colour: str, label: str,
    line: str = "-",
) -> None:  # fmt: skip
    """A line with a dot at each of its values, and the band around it."""
    axis.plot(middle.index, middle, line, marker="o", color=colour, label=label)
    axis.fill_between(middle.index, low, high, color=colour, alpha=0.12, linewidth=0)


def boxes(axis: Axes, values: Mapping[str, pd.Series]) -> None:
    """A row for each name, in its colour: a box, and a dot for each value."""
    drawn = axis.boxplot(
        list(values.values()), orientation="horizontal", positions=range(len(values)), widths=0.6,
        showfliers=False, manage_ticks=False, patch_artist=True, medianprops={"color": "0.25"},
    )  # fmt: skip
    colours = palette(values)
    for row, (box, (name, x)) in enumerate(zip(drawn["boxes"], values.items(), strict=True)):
        box.set(facecolor=colours[name], alpha=0.35)
        apart = np.resize([-0.14, 0.14, 0] if len(x) > 1 else [0], len(x))
        axis.scatter(x, row + apart, s=25, color=colours[name], zorder=3)
    axis.invert_yaxis()
    axis.grid(False, axis="y")
