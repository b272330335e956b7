"""What do the paper's figures show?

Each function returns the figure and the numbers behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from erlib.papers.er_lens import kendall
from erlib.papers.er_lens.erasure import MEASURES, erasure_curves
from erlib.papers.er_lens.layers import layer_scores
from erlib.papers.er_lens.recipe import bounds
from erlib.papers.er_lens.scatter import f1_scores, legend_below, note, titled
from erlib.papers.er_lens.sets import HOME, LONG, annotated, in_table_2, shown
from erlib.papers.er_lens.systems import (
    CLASSIFIERS,
    DECOMPOSITIONS,
    GUIDES,
    SYSTEMS,
    TECHNIQUES,
    system_named,
)
from erlib.papers.study import Study
from erlib.reports.style import (
    BLACK,
    GREY,
    SIGNED,
    SIZED,
    VERMILION,
    figure_style,
    new_figure,
    palette,
)

LAYERED = ("ATT", "ATTR", "ALTI", "DX")
CHANCE = 50  # AUC x 100 of scores that know nothing of the rationale
Drawn = tuple[Figure, pd.DataFrame]


def figure_2(study: Study) -> Drawn:
    """F1 of every seed, by system and set; ER-C+IxG, whose spread hides the others, is apart."""
    return _f1_boxes(study, [s for s in CLASSIFIERS if s != "ER-C+IxG"])


def figure_11(study: Study) -> Drawn:
    """Figure 2 with ER-C+IxG."""
    return _f1_boxes(study, CLASSIFIERS)


def _f1_boxes(study: Study, systems: list[str]) -> Drawn:
    data, sets = f1_scores(study), in_table_2(study.settings)
    data = data.loc[data["system"].isin(systems), ["system", "set", "value", "seed"]]
    columns = 3
    colours = palette(systems)
    figure, axes = new_figure(-(-len(sets) // columns), columns, width=9.6, height=5.6)
    with figure_style():
        flat = [axis for row in axes for axis in row]
        for i, (axis, test) in enumerate(zip(flat, sets, strict=False)):
            panel = data[data["set"] == test.name]
            boxes = axis.boxplot(
                [panel.loc[panel["system"] == system, "value"] for system in systems],
                orientation="horizontal",
                positions=range(len(systems)),
                widths=0.6,
                showfliers=False,
                manage_ticks=False,
                patch_artist=True,
                medianprops={"color": "0.25"},
            )
            for row, (box, system) in enumerate(zip(boxes["boxes"], systems, strict=True)):
                box.set(facecolor=colours[system], alpha=0.35)
                values = panel.loc[panel["system"] == system, "value"]
                apart = np.resize([-0.14, 0.14, 0] if len(values) > 1 else [0], len(values))
                axis.scatter(values, row + apart, s=25, color=colours[system], zorder=3)
            axis.set_yticks(range(len(systems)), [] if i % columns else systems)
            axis.invert_yaxis()
            axis.grid(False, axis="y")
            axis.set(title=titled(test), xlabel="F1-macro (%)")
        for axis in flat[len(sets) :]:
            axis.set_axis_off()
    return figure, data.reset_index(drop=True)


def figure_3(study: Study) -> Drawn:
    """Kendall's τ of a technique between systems on the short reviews from another domain."""
    systems = ["ER+Att", "ER-C+Att", "ER-C+AttR", "ER-C+IxG"]
    return _histograms(study, shown(study.settings), systems)


def figure_9(study: Study, where: str) -> Drawn:
    """As Figure 3 for all systems, on one of the annotated sets."""
    return _histograms(study, where, CLASSIFIERS[1:])


def _histograms(study: Study, where: str, systems: Sequence[str]) -> Drawn:
    data = kendall.histogram_table(study, where, systems)
    techniques = [x for x in TECHNIQUES if x in set(data["technique"])] or list(GUIDES)
    figure, axes = new_figure(
        len(systems), len(techniques), width=10.5, height=1.15 * len(systems) + 0.9
    )
    colours = {"BS-BS": GREY, "BS-ER": VERMILION}
    bins = np.linspace(-1, 1, 41)
    left = bins[bins <= min([-0.2, *data["tau"].dropna()])][-1]
    with figure_style():
        for row, system in enumerate(systems):
            for column, technique in enumerate(techniques):
                axis = axes[row][column]
                cell = data[(data["system"] == system) & (data["technique"] == technique)]
                said = []
                for pair, colour in colours.items():
                    taus = cell.loc[cell["pair"] == pair, "tau"].dropna()
                    if len(taus):
                        share = np.full(len(taus), 1 / len(taus))
                        axis.hist(
                            taus, bins.tolist(), weights=share, histtype="stepfilled",
                            color=colour, alpha=0.55, label=_PAIRS[pair],
                        )  # fmt: skip
                        axis.axvline(taus.mean(), color=colour, linewidth=1.4)
                        said.append(f"{taus.mean():.2f}")
                axis.set_title(
                    (f"{technique}\n" if row == 0 else "") + " | ".join(said), fontsize=8.5
                )
                axis.set(xlim=(left, 1), xticks=[0, 0.5, 1], yticks=[])
                axis.grid(False)
                if row < len(systems) - 1:
                    axis.set_xticklabels([])
                else:
                    axis.set_xlabel("Kendall's τ", fontsize=9)
                if column == 0:
                    axis.set_ylabel(system, rotation=0, ha="right", va="center")
                if "BS-ER" not in set(cell["pair"]):
                    note(axis, "not\nmeasured")
        legend_below(figure, axes[0][0])
    return figure, data


_PAIRS = {"BS-BS": "two Baselines", "BS-ER": "Baseline and the system"}


def figure_4(study: Study) -> Drawn:
    """Plausibility by layer of attention and DecompX on in-domain dev texts."""
    systems = ["Baseline", "ER+Att", "ER-C+Att", "ER-C+AttR", "ER-C+IxG"]
    data = layer_scores(study, HOME)
    data = data[data["system"].isin(systems) & data["technique"].isin(["ATT", "DX"])]
    return _layer_maps(data, ["ATT", "DX"], systems)


def figure_13(study: Study, where: str) -> Drawn:
    """Plausibility by layer of every technique that has layers, for all systems, on one set."""
    data = layer_scores(study, where)
    techniques = [x for x in LAYERED if x in set(data["technique"])]
    new = DECOMPOSITIONS if where == LONG else ()
    return _layer_maps(data, techniques, list(SYSTEMS), new)


def _layer_maps(
    data: pd.DataFrame, techniques: list[str], systems: list[str], new: tuple[str, ...] = ()
) -> Drawn:
    """A map [system, layer] for each technique; `new`: those that the paper does not have."""
    if data.empty:
        figure, axes = new_figure(height=1.2)
        axes[0][0].set_axis_off()
        note(axes[0][0], "no text has an AUC")
        return figure, data
    columns = 2
    rows = -(-len(techniques) // columns)
    figure, axes = new_figure(
        rows, columns, width=10.5, height=rows * (0.33 * len(systems) + 1.0) + 0.3
    )
    flat = [axis for row in axes for axis in row]
    reach = (data["value"] - CHANCE).abs().max()
    with figure_style():
        for i, (axis, technique) in enumerate(zip(flat, techniques, strict=False)):
            cells = data[data["technique"] == technique]
            if cells.empty:
                axis.set(title=f"{technique}: undefined", xticks=[], yticks=[])
                continue
            means = cells.pivot_table(index="system", columns="layer", values="value")
            sns.heatmap(
                means.reindex(systems),  # a row stays empty where a system was not measured
                ax=axis,
                annot=True,
                fmt=".0f",
                annot_kws={"fontsize": 8.5},
                cmap=SIGNED,
                vmin=CHANCE - reach,
                vmax=CHANCE + reach,
                cbar=i % columns == columns - 1,
                cbar_kws={"label": f"AUC x 100 (white: {CHANCE}, chance)"},
            )
            title = f"{technique} (new)" if technique in new else technique
            axis.set(xlabel="layer", ylabel="", title=title)
            axis.grid(False)
            axis.tick_params(axis="y", rotation=0)
        for axis in flat[len(techniques) :]:
            axis.set_axis_off()
    return figure, data


def figure_5(study: Study) -> Drawn:
    """Cross-entropy against explanation loss on dev as λ rises, for ER+Att and ER+AttR."""
    return _sweep(study, ["ATT", "ATTR"])


def figure_12(study: Study) -> Drawn:
    """Figure 5 for ER+IxG."""
    return _sweep(study, ["IXG"])


def sweep(study: Study) -> pd.DataFrame:
    """Of every λ, guide and seed both losses on dev: guide, weight, seed, task, explanation."""
    numbers = study.numbers(c for c in study.of("figure-5") if " at λ=" in c.row)
    split = numbers["row"].str.split(" at λ=", expand=True)
    keys = pd.DataFrame(
        {
            "guide": [SYSTEMS[name].guide for name in split[0]],
            "weight": split[1].astype(float),
            "seed": numbers["seed"],
        }
    )
    wide = numbers[["metric", "value"]].join(keys)
    wide = wide.pivot(index=["weight", "guide", "seed"], columns="metric", values="value").dropna()
    wide = wide.rename(columns={"cross_entropy": "task", "expl_loss": "explanation"})
    return wide.rename_axis(columns=None).reset_index()[[*keys, "task", "explanation"]]


def _sweep(study: Study, guides: list[str]) -> Drawn:
    data = sweep(study)
    data = data[data["guide"].isin(guides)].reset_index(drop=True)
    figure, axes = new_figure(1, len(guides), width=4.4 * len(guides), height=3.8)
    with figure_style():
        for axis, guide in zip(axes[0], guides, strict=True):
            if axis is not axes[0][0]:
                axis.sharey(axes[0][0])
            system = system_named("joint", guide)
            runs = data[data["guide"] == guide]
            means = runs.groupby("weight")[["explanation", "task"]].mean()
            colour = palette([system])[system]
            axis.scatter(runs["explanation"], runs["task"], color=colour, alpha=0.5, s=18)
            axis.plot(means["explanation"], means["task"], marker="o", color=colour)
            ranked = means.sort_values("task", ascending=False)
            for rank, (weight, row) in enumerate(ranked.iterrows()):
                # neighbours may lie on each other, but not their labels: above, beside, below
                place = "top" if rank == len(ranked) - 1 else "center" if rank else "bottom"
                axis.annotate(
                    f"λ={weight:g}",
                    (row["explanation"], row["task"]),
                    textcoords="offset points",
                    xytext={"bottom": (0, 6), "center": (9, 0), "top": (0, -6)}[place],
                    ha="left" if place == "center" else "center",
                    va=place,
                    fontsize=8.5,
                    bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "linewidth": 0},
                )
            bound = bounds(study, guide).dev
            for value, style, name in ((bound, "--", "b_val"), (1.1 * bound, ":", "1.1 b_val")):
                axis.axvline(value, color=BLACK, linestyle=style, linewidth=1, label=name)
            axis.margins(x=0.18, y=0.15)
            axis.locator_params(axis="x", nbins=5)
            axis.set(title=system, xlabel="explanation loss on dev", ylabel="cross-entropy on dev")
        legend_below(figure, axes[0][0])
    return figure, data


def figure_8(study: Study) -> Drawn:
    """Normalised sufficiency and comprehensiveness against the share of tokens kept."""
    data = erasure_curves(study)
    figure, axes = new_figure(1, 2, width=9.2, height=3.8)
    names = [*TECHNIQUES, "RAND"]
    with figure_style():
        for axis, measure in zip(axes[0], MEASURES, strict=True):
            for name in names:
                curves = data[data["technique"] == name].groupby("kept")[measure]
                mean, low, high = curves.mean(), curves.min(), curves.max()
                colour = palette([name])[name]
                line = "--" if name == "RAND" else "-"
                axis.plot(mean.index, mean, line, marker="o", color=colour, label=name)
                axis.fill_between(mean.index, low, high, color=colour, alpha=0.12)
            axis.set(
                xlabel="tokens in the rationale (%)",
                ylabel=f"normalised {measure}",
                xticks=sorted(data["kept"].unique()),
            )
        axes[0][1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure, data


def figure_10(study: Study, where: str) -> Drawn:
    """Mean τ between the techniques of each system, on one of the annotated sets."""
    found = kendall.matrices(study, where)
    names = found["Baseline"].tau.index
    figure, axes = new_figure(2, 4, width=10.8, height=5.6)
    flat = [axis for row in axes for axis in row]
    with figure_style():
        for axis, (system, of) in zip(flat, found.items(), strict=False):
            values = of.tau.reindex(index=names, columns=names)  # empty where not measured
            marks = of.one_seed.reindex(index=names, columns=names).map(
                lambda alone: "*" if alone is True else ""
            )
            sns.heatmap(
                values,
                ax=axis,
                annot=values.map(lambda tau: f"{tau:.2f}".replace("-", "−")) + marks,
                fmt="",
                annot_kws={"fontsize": 7},
                cmap=SIZED,
                vmin=-0.2,
                vmax=1,
                cbar=False,
                square=True,
                mask=np.triu(np.ones(values.shape, dtype=bool), 1),
            )
            axis.set_title(system)
            axis.grid(False)
            axis.tick_params(axis="y", rotation=0, labelsize=8)
            axis.tick_params(axis="x", rotation=90, labelsize=8)
        flat[-1].set_axis_off()
    return figure, kendall.pairs_of(found, annotated(study.settings)[where].name)
