"""What do the paper's figures show?

Each function returns the figure and the numbers behind it. Figures 1 and 2, the paper's two
drawings, are redrawn from its text; Figures 3 and 4 are in `examples`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from erlib.config import RunSpec
from erlib.papers.holes import as_figure, remark_of
from erlib.papers.ivra.cells import COUNTED, MARKED
from erlib.papers.ivra.costs import explaining_times, training_times
from erlib.papers.ivra.readings import LOGGED
from erlib.papers.ivra.systems import CRITERIA, LEVELS, SPARSEMAX, SUBSETS, subset_name
from erlib.papers.study import Study, by_metric
from erlib.reports.diagrams import Box, diagram
from erlib.reports.panels import Drawn, heat_map, legend_below
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

COLOURS = {"Baseline": GREY, "SIM": BLUE, "COMP": ORANGE, "SUFF": VERMILION, "CONS": PURPLE}
LEVEL_COLOURS = {"feature": BLUE, "head": ORANGE, "layer": GREEN, "all levels": BLACK}
# Figure 6: a curve that lies under another can still be seen at its sides.
WIDTHS = dict(zip((*reversed(LEVELS), "all levels"), (6.0, 4.4, 2.8, 1.2), strict=True))
NAMES = {"SIM": "simulatability", "COMP": "comprehensiveness", "SUFF": "sufficiency",
         "CONS": "consistency"}  # fmt: skip
LIMIT = 100.0  # per cent: gains beyond it have the full colour


def figure_1() -> Drawn:
    """The framework: a model says ŷ and r; each criterion looks at both and sends back a loss."""
    wide = (2.1, 0.75)
    boxes = {
        "x": Box((0.0, 2.15), "text x", GREY, (1.2, 0.75)),
        "model": Box((1.9, 2.0), "model M\nŷ, and r by its\nattention module", GREEN, (1.9, 1.05)),
        "student": Box((5.0, 4.3), "student S\nŷ*, r*", BLUE, wide),
        "removed": Box((5.0, 3.2), "x∖t: without the\ntop k % of r", ORANGE, wide),
        "kept": Box((5.0, 2.1), "t: only the\ntop k % of r", VERMILION, wide),
        "other": Box((5.0, 1.0), "another text x′\nof the batch", PURPLE, wide),
        "gold": Box((5.0, 0.0), "the gold label y", GREY, (2.1, 0.65)),
        "L_SIM": Box((8.0, 4.3), r"$L_{SIM}$: S gives" "\nM's answer and r", BLUE, wide),
        "L_COMP": Box((8.0, 3.2), r"$L_{COMP}$: M changes" "\nits answer", ORANGE, wide),
        "L_SUFF": Box((8.0, 2.1), r"$L_{SUFF}$: M keeps" "\nits answer", VERMILION, wide),
        "L_CONS": Box((8.0, 1.0), r"$L_{CONS}$: similar texts," "\nsimilar r", PURPLE, wide),
        "L_CE": Box((8.0, 0.0), r"$L_{CE}$: ŷ is y", GREY, (2.1, 0.65)),
    }
    looks = {"student": "L_SIM", "removed": "L_COMP", "kept": "L_SUFF", "other": "L_CONS",
             "gold": "L_CE"}  # fmt: skip
    arrows = [("x", "model"), *(("model", seen) for seen in looks), *looks.items()]
    return diagram(boxes, arrows, height=3.9)


def figure_2() -> Drawn:
    """The attention module: features, heads and layers are weighed and normalised in turn."""
    size = (1.8, 0.95)
    boxes = {
        "queries": Box((0.0, 1.5), "queries Q\nof head h", GREY, (1.3, 0.95)),
        "keys": Box((0.0, 0.0), "keys K\nof head h", GREY, (1.3, 0.95)),
        "query features": Box((1.8, 1.5), "NORM($ω_Q$ ⊙ q)\nover features\neq. 1", BLUE, size),
        "key features": Box((1.8, 0.0), "NORM($ω_K$ ⊙ k)\nover features\neq. 2", BLUE, size),
        "head": Box((4.1, 0.75), "$ψ_h$: mean query\nagainst each key\neq. 4", GREEN, size),
        "layer": Box((6.4, 0.75), "Ψ: NORM [$λ_h ψ_h$]\nover heads, tokens;\nΣ heads · eq. 3",
                     ORANGE, (1.95, 0.95)),
        "explanation": Box((8.85, 0.75),
                           "r: NORM [$η_ℓ Ψ_ℓ$]\nover layers, tokens;\nΣ layers · eq. 5",
                           VERMILION, (1.95, 0.95)),
    }  # fmt: skip
    arrows = [
        ("queries", "query features"),
        ("keys", "key features"),
        ("query features", "head"),
        ("key features", "head"),
        ("head", "layer"),
        ("layer", "explanation"),
    ]
    return diagram(boxes, arrows, height=2.0)


def gains(study: Study) -> pd.DataFrame:
    """Figure 5's: row (a set of criteria), criterion, seed, gain in %, difference, trained."""
    cells = [cell for cell in study.of("figure-5") if cell.column]
    found = by_metric(study.numbers(cells)).rename(columns={"column": "criterion"})
    return found[["row", "criterion", "seed", "gain", "difference", "trained"]]


def figure_5(study: Study) -> Drawn:
    """Average relative gain of training for a set of criteria over training for one alone."""
    data = gains(study)
    means = data.pivot_table(index="criterion", columns="row", values="gain", dropna=False)
    sets = [s for s in SUBSETS if subset_name(s) in means]
    means = means.reindex(index=list(CRITERIA), columns=[subset_name(s) for s in sets])
    reference = np.array([[s == (c,) for s in sets] for c in CRITERIA])
    figure, [[axis]] = new_figure(width=0.62 * len(sets) + 2.4, height=3.4)
    with figure_style():
        heat_map(
            axis, means.mask(reference), means.map(_whole), size=8.5, cmap=SIGNED, vmin=-LIMIT,
            vmax=LIMIT, cbar_kws={"label": "gain (%)"},
        )  # fmt: skip
        for row, column in zip(*np.nonzero(reference), strict=True):
            axis.text(column + 0.5, row + 0.5, "alone", ha="center", va="center", fontsize=7.5)
        axis.set(xlabel="trained for", ylabel="measured")
        axis.set_xticklabels([subset_name(s).replace("+", "\n") for s in sets], rotation=0)
    return figure, data


def _whole(gain: float) -> str:
    """−12, +3 or 0; a dash where there is no gain to speak of."""
    if not np.isfinite(gain):
        return "–"
    return f"{round(gain):+d}".replace("-", "−") if round(gain) else "0"


def curves(study: Study) -> pd.DataFrame:
    """Figure 6's: criterion, level, seed, epoch, loss (NaN where a run failed), trained."""
    tables = []
    for cell in study.of("figure-6"):
        [run] = cell.specs
        assert isinstance(run, RunSpec)
        history = pd.DataFrame({"epoch": [1], LOGGED[cell.column]: [np.nan]})
        if study.has(run):
            history = study.history(run)
        named = {"criterion": cell.column, "level": cell.row, "seed": cell.seed}
        found = history[["epoch"]].assign(loss=history[LOGGED[cell.column]], **named)
        tables.append(found.assign(trained=study.is_trained(run)))
    return pd.concat(tables, ignore_index=True)[
        ["criterion", "level", "seed", "epoch", "loss", "trained"]
    ]


def figure_6(study: Study) -> Drawn:
    """Training losses when only features, heads or layers are selected, or all of them."""
    data = curves(study)
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
        legend_below(figure, axes[0], 5)
    return figure, data


def shares(study: Study) -> pd.DataFrame:
    """Figure 7's: task, row, criterion, seed, value, trained.

    What is not trained has the same share under both criteria.
    """
    numbers = study.numbers(study.of("figure-7"))
    names = {f"{short}, {c}": (row, c) for row, short in MARKED.items() for c in ("COMP", "SUFF")}
    both = [names.get(row, (row, None)) for row in numbers["row"]]
    found = numbers.assign(row=[row for row, _ in both], criterion=[c for _, c in both])
    parts = [found[found["criterion"].fillna(c) == c].assign(criterion=c) for c in ("COMP", "SUFF")]
    return pd.concat(parts, ignore_index=True).rename(columns={"column": "task"})[
        ["task", "row", "criterion", "seed", "value", "trained"]
    ]


def figure_7(study: Study) -> Drawn:
    """How many tokens an explainer calls important, for models trained for COMP or SUFF."""
    data = shares(study)
    panels = list(dict.fromkeys(data["task"]))
    figure, [axes] = new_figure(1, len(panels), width=3.1 * len(panels) + 1.2, height=3.4)
    with figure_style():
        for axis, task in zip(axes, panels, strict=True):
            panel = data[data["task"] == task]
            sns.barplot(
                panel, x="value", y="row", hue="criterion", ax=axis, palette=COLOURS,
                order=COUNTED, errorbar="sd", err_kws={"linewidth": 1.2},
                legend=axis is axes[0],
            )  # fmt: skip
            for place, name in enumerate(COUNTED):
                if name not in set(panel["row"]):
                    axis.text(0.01, place, "not measured", va="center", color=GREY, fontsize=8.5)
            axis.set(title=task, xlabel="share of important tokens", ylabel="",
                     xlim=(0, 1.12 * data["value"].max()))  # fmt: skip
            if axis is not axes[0]:
                axis.set_yticklabels([])
        if own := axes[0].get_legend():
            own.remove()
        legend_below(figure, axes[0], 5, title="model trained for")
    return figure, data


def transfer_gains(study: Study) -> pd.DataFrame:
    """Figure 8's: criterion, seed, gain in %, difference, trained."""
    names = {"row": "criterion", "arg_of_direct_training": "gain"}
    found = by_metric(study.numbers(study.of("figure-8"))).rename(columns=names)
    return found[["criterion", "seed", "gain", "difference", "trained"]]


def figure_8(study: Study) -> Drawn:
    """What direct training has over models brought from another set of the same task."""
    data = transfer_gains(study)
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


def figure_9(study: Study) -> Drawn:
    """Seconds of training against the number of texts, and their ratio to the Baseline's."""
    return _times(training_times(study), "system", COLOURS, "Baseline", "training")


def figure_10(study: Study) -> Drawn:
    """Seconds of explaining against the number of texts, and their ratio to IvRA-sparsemax's."""
    times = explaining_times(study)
    colours = palette(times.get("method", ()))
    return _times(times, "method", colours, SPARSEMAX, "explaining")


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
        legend_below(figure, axes[0], 5)
    return figure, times


def _plain_numbers(axis: Axes) -> None:
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.yaxis.set_minor_formatter(lambda value, _: "")
