"""What do the paper's figures show?

Each function returns the figure and the numbers behind it; Figures 3 and 4 are in `examples`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from erlib.papers.holes import as_figure, remark_of
from erlib.papers.ivra import measurements
from erlib.papers.ivra.study import Study
from erlib.papers.ivra.systems import CRITERIA, LEVELS, SUBSETS, subset_name
from erlib.reports.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SIGNED,
    VERMILION,
    figure_style,
    new_figure,
    palette,
)

Drawn = tuple[Figure, pd.DataFrame]
COLOURS = {"Baseline": GREY, "SIM": BLUE, "COMP": ORANGE, "SUFF": VERMILION, "CONS": PURPLE}
LEVEL_COLOURS = {"feature": BLUE, "head": ORANGE, "layer": GREEN, "all levels": BLACK}
# Figure 6: a curve that lies under another can still be seen at its sides.
WIDTHS = dict(zip((*reversed(LEVELS), "all levels"), (6.0, 4.4, 2.8, 1.2), strict=True))
NAMES = {"SIM": "simulatability", "COMP": "comprehensiveness", "SUFF": "sufficiency",
         "CONS": "consistency"}  # fmt: skip
LIMIT = 100.0  # per cent: gains beyond it have the full colour


def figure_5(study: Study) -> Drawn:
    """Average relative gain of training for a set of criteria over training for one alone."""
    gains = study.subset_gains
    means = gains.pivot_table(index="criterion", columns="row", values="gain", dropna=False)
    sets = [s for s in SUBSETS if "+".join(s) in means]
    means = means.reindex(index=list(CRITERIA), columns=["+".join(s) for s in sets])
    reference = np.array([[s == (c,) for s in sets] for c in CRITERIA])
    figure, [[axis]] = new_figure(width=0.62 * len(sets) + 2.4, height=3.4)
    with figure_style():
        sns.heatmap(
            means.mask(reference),
            ax=axis,
            annot=means.map(_whole),
            fmt="",
            annot_kws={"fontsize": 8.5},
            cmap=SIGNED,
            vmin=-LIMIT,
            vmax=LIMIT,
            cbar_kws={"label": "gain (%)"},
        )
        for row, column in zip(*np.nonzero(reference), strict=True):
            axis.text(column + 0.5, row + 0.5, "alone", ha="center", va="center", fontsize=7.5)
        axis.set(xlabel="trained for", ylabel="measured")
        axis.set_xticklabels([subset_name(s).replace("+", "\n") for s in sets], rotation=0)
        axis.tick_params(axis="y", rotation=0)
        axis.grid(False)
    return figure, gains


def _whole(gain: float) -> str:
    """−12, +3 or 0; a dash where there is no gain to speak of."""
    if not np.isfinite(gain):
        return "–"
    return f"{round(gain):+d}".replace("-", "−") if round(gain) else "0"


def figure_6(study: Study) -> Drawn:
    """Training losses when only features, heads or layers are selected, or all of them."""
    data = study.curves
    figure, [axes] = new_figure(1, len(CRITERIA), width=10.5, height=3.0)
    with figure_style():
        for axis, criterion in zip(axes, CRITERIA, strict=True):
            for level, width in WIDTHS.items():
                cell = data[(data["criterion"] == criterion) & (data["level"] == level)]
                mean = cell.groupby("epoch")["loss"].mean()
                axis.plot(mean.index, mean, marker="o", markersize=1.6 * width, linewidth=width,
                          color=LEVEL_COLOURS[level], label=level)  # fmt: skip
            axis.set(title=NAMES[criterion], xlabel="epoch", xticks=sorted(data["epoch"].unique()))
        axes[0].set_ylabel("training loss")
        _shared_legend(figure, axes[0])
    return figure, data


def figure_7(study: Study) -> Drawn:
    """How many tokens an explainer calls important, for models trained for COMP or SUFF."""
    cells = measurements.important_tokens(study.settings)
    data = study.frame(cells)
    panels = list(dict.fromkeys(data["task"]))
    figure, [axes] = new_figure(1, len(panels), width=3.1 * len(panels) + 1.2, height=3.4)
    with figure_style():
        for axis, task in zip(axes, panels, strict=True):
            panel = data[data["task"] == task]
            sns.barplot(
                panel, x="value", y="row", hue="criterion", ax=axis, palette=COLOURS,
                order=measurements.COUNTED, errorbar="sd", err_kws={"linewidth": 1.2},
                legend=axis is axes[0],
            )  # fmt: skip
            for place, name in enumerate(measurements.COUNTED):
                if name not in set(panel["row"]):
                    axis.text(0.01, place, "not measured", va="center", color=GREY, fontsize=8.5)
            axis.set(title=task, xlabel="share of important tokens", ylabel="",
                     xlim=(0, 1.12 * data["value"].max()))  # fmt: skip
            if axis is not axes[0]:
                axis.set_yticklabels([])
        if own := axes[0].get_legend():
            own.remove()
        _shared_legend(figure, axes[0], title="model trained for")
    return figure, data


def figure_8(study: Study) -> Drawn:
    """What direct training has over models brought from another set of the same task."""
    data = study.transfer_gains
    figure, [[axis]] = new_figure(width=5.6, height=3.0)
    with figure_style():
        sns.barplot(
            data, x="criterion", y="gain", hue="criterion", order=list(CRITERIA), palette=COLOURS,
            errorbar="sd", ax=axis, legend=False,
        )  # fmt: skip
        for place, criterion in enumerate(CRITERIA):
            gain = data.loc[data["criterion"] == criterion, "gain"].mean()
            axis.annotate(_whole(gain), (place, gain), ha="center",
                          va="bottom" if gain >= 0 else "top", fontsize=9,
                          xytext=(0, 3 if gain >= 0 else -3),
                          textcoords="offset points")  # fmt: skip
        axis.axhline(0, color=BLACK, linewidth=0.8)
        axis.margins(y=0.12)
        axis.set(xlabel="trained for and measured by", ylabel="gain of direct training (%)")
    return figure, data


def figure_9(times: pd.DataFrame) -> Drawn:
    """Seconds of training against the number of texts, and their ratio to the Baseline's."""
    return _times(times, "system", COLOURS, "Baseline", "training")


def figure_10(times: pd.DataFrame) -> Drawn:
    """Seconds of explaining against the number of texts, and their ratio to IvRA-sparsemax's."""
    colours = palette(times.get("method", ()))
    return _times(times, "method", colours, "IvRA - Sparsemax", "explaining")


def _times(
    times: pd.DataFrame, name: str, colours: dict[str, str], reference: str, doing: str
) -> Drawn:
    if why := remark_of(times):
        return as_figure(why)
    wide = times.pivot(index=["texts", "repetition"], columns=name, values="seconds")
    order = list(dict.fromkeys(times[name]))
    by_size = (wide.div(wide[reference], axis=0)).groupby("texts").median()
    figure, [axes] = new_figure(1, 2, width=9.6, height=3.4)
    with figure_style():
        for axis, table in zip(axes, (wide.groupby("texts").median(), by_size), strict=True):
            for one, size in zip(order, np.linspace(9, 4, len(order)), strict=True):  # none hidden
                axis.plot(table.index, table[one], marker="o", markersize=size,
                          linewidth=size / 3, color=colours[one], label=one)  # fmt: skip
            axis.set(xscale="log", yscale="log", xlabel="texts", xticks=table.index)
            axis.set_xticks([], minor=True)
            axis.set_xticklabels([f"{n:,}" for n in table.index])
            _plain_numbers(axis)
        axes[0].set_ylabel(f"seconds of {doing}")
        axes[1].set_ylabel(f"ratio to {reference}")
        _shared_legend(figure, axes[0])
    return figure, times


def _plain_numbers(axis: Axes) -> None:
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.yaxis.set_minor_formatter(lambda value, _: "")


def _shared_legend(figure: Figure, axis: Axes, title: str | None = None) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(5, len(labels)),
                  title=title)  # fmt: skip
